"""The shape of the repo, held by tools: layers, pure planning, one library per module, what a command may import."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    p
    for top in ("reconciler", "specs", "state", "providers")
    for p in (ROOT / top).rglob("*.py")
    if "__pycache__" not in p.parts
)
# Third-party libraries, and the modules that may know each. typer shapes every command's signature.
LIBRARIES = {
    "yaml": {
        "specs/reconciler_specs/document.py",
        "providers/reconciler_shape/configfile.py",
    },
    "ruamel": {"specs/reconciler_specs/edit.py"},
    "croniter": {"specs/reconciler_specs/values.py"},
    "networkx": {"reconciler/graph.py"},
    "pyjson5": {"providers/reconciler_openclaw/authored.py"},
    "websockets": {"providers/reconciler_openclaw/rpc.py"},
    "packaging": {"reconciler/versions.py"},
    "typer": {
        "reconciler/cli/*.py",
        "providers/reconciler_native/commands.py",
        "providers/reconciler_viable/commands.py",
    },
    "pydantic": {"specs/reconciler_specs/*.py", "providers/reconciler_viable/shapes.py"},
    "dotenv": {"reconciler/vault.py"},
    "psutil": {"reconciler/processes.py"},
    "git": {"state/reconciler_state/repository.py"},
    "httpx": {"providers/reconciler_viable/wire.py", "reconciler/outbox.py"},
    "uvicorn": {"providers/reconciler_viable/serving.py"},
}
# What runs under the harness's own interpreter has only the standard library and the harness.
WORKER = "providers/reconciler_hermes/worker/"
SENT = (
    "plain",
    "record",
    "block",
    "yamledit",
    "envfile",
    "platforms",
    "channels",
    "channelwrites",
    "routes",
    "webhooks",
    "parts",
    "trash",
    "skillfolder",
)  # of the shape: their source goes along
TOO_LONG = 400
# Files over the limit, with the reason; the list may only get shorter.
LONG: dict[str, str] = {
    "specs/reconciler_specs/values.py": "the small values; splitting it would give croniter two homes",
    "specs/reconciler_specs/document.py": "one reader: nodes, limits and traps belong together",
    "specs/reconciler_specs/edit.py": "the one module that knows ruamel",
}


def imports(path: Path) -> set[str]:
    """Top-level names of the modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(a.name.partition(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_a_library_is_known_to_its_modules_only(library: str) -> None:
    users = {str(p.relative_to(ROOT)) for p in SOURCES if library in imports(p)}
    strangers = {u for u in users if not any(Path(u).match(allowed) for allowed in LIBRARIES[library])}
    assert not strangers


def test_no_other_library_is_imported() -> None:
    ours = {"reconciler", "reconciler_specs", "reconciler_state"}
    ours |= {"reconciler_shape", "reconciler_hermes", "reconciler_native", "reconciler_orchestrator"}
    ours |= {"reconciler_openclaw", "reconciler_viable"}
    for path in SOURCES:
        name = str(path.relative_to(ROOT))
        known = sys.stdlib_module_names | ours | set(LIBRARIES)
        if name.removeprefix("providers/reconciler_shape/") in {f"{module}.py" for module in SENT}:
            known = sys.stdlib_module_names
        if name.startswith(WORKER):
            known = sys.stdlib_module_names | {
                "reconciler_shape",
                "cron",
                "gateway",
                "hermes_cli",
                "hermes_constants",
                "tools",
                "utils",
            }
        assert imports(path) <= known, name


def test_every_dependency_is_used() -> None:
    """But for tzdata, which zoneinfo finds by itself."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {canonicalize_name(Requirement(line).name) for line in declared}
    made_by = packages_distributions()
    used = {canonicalize_name(name) for path in SOURCES for module in imports(path) for name in made_by.get(module, ())}
    assert names - used == {"tzdata"}


def test_layers_and_purity() -> None:
    """The contracts of .importlinter."""
    script = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(script)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_engine_names_no_harness() -> None:
    words = ("hermes", "openclaw", "orchestrator", "viable")
    for path in SOURCES:
        name = str(path.relative_to(ROOT))
        if name.startswith(("reconciler/", "state/")) and not name.startswith("reconciler/testing/"):
            text = path.read_text().lower()
            assert not [w for w in words if w in text], name


def test_files_are_short() -> None:
    long = {str(p.relative_to(ROOT)) for p in SOURCES if len(p.read_text().splitlines()) > TOO_LONG}
    assert long <= set(LONG), f"over {TOO_LONG} lines, and not excused: {long - set(LONG)}"


def test_no_function_is_written_twice() -> None:
    """What two providers need is the shape's. Small ones (an owner's name) may look alike by chance."""
    found: dict[str, set[tuple[str, str]]] = {}
    for path in sorted((ROOT / "providers").glob("reconciler_*/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if sum(1 for part in body for _ in ast.walk(part)) >= 60:
                    package = path.relative_to(ROOT / "providers").parts[0]
                    found.setdefault("".join(map(ast.dump, body)), set()).add((package, node.name))
    assert not [same for same in found.values() if len({package for package, _ in same}) > 1]


def test_every_module_says_what_it_is() -> None:
    for path in SOURCES:
        if path.name != "__init__.py" or path.read_text().strip():
            assert ast.get_docstring(ast.parse(path.read_text())), path


LAZY = ("networkx", "pyjson5", "psutil", "rich", "ruamel", "httpx", "uvicorn", "git", "croniter", "packaging")


@pytest.mark.parametrize("argv", [["--help"], ["plan", "--nosuch"], ["plan"]], ids=" ".join)
def test_a_command_imports_only_what_it_needs(argv: list[str], tmp_path: Path) -> None:
    """`--help`, a usage error and a plan with nothing to do load none of the slow libraries, in a repository or not."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("_config_version: 33\n")
    (tmp_path / "setup.yaml").write_text(
        "version: 1\nname: solo\nhomes: {main: {harness: hermes, path: ./home, profiles: {default: {jobs: "
        '{a: {schedule: {cron: "0 8 * * 1-5"}, prompt: x, deliver: local}}}}}}\n'
    )
    code = (
        "import sys\nfrom reconciler.cli.app import run\n"
        f"run({argv!r})\nprint([m for m in {LAZY!r} if m in sys.modules])"
    )
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().endswith("[]"), done.stdout + done.stderr
