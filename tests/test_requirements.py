"""docs/requirements.md: each requirement has its row, each row names tests that are there, or says why it waits.

And the rule that no test of one module can show: what a provider does not own, it does not write (S0-03).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "requirements.md"
NUMBERS = {
    "S0": [*range(1, 26), *range(41, 45), *range(46, 66)],
    "S1": [*range(1, 7), 15, 17],
    "S4": [*range(1, 29), 30],
}

_ROW = re.compile(r"^\| (S\d-\d+) (MUST|SHOULD) \| (.+) \| (.+) \|$", re.MULTILINE)
_FILE = re.compile(r"`(tests/[\w/.-]+)`")
_TEST = re.compile(r"`(test_\w+)`")
_REASON = re.compile(r"\b(waits for|does not apply)\b")
ROWS = [match.groups() for match in _ROW.finditer(PAGE.read_text("utf-8"))]


def test_every_requirement_has_one_row() -> None:
    assert [name for name, *_ in ROWS] == [f"{part}-{n:02d}" for part, numbers in NUMBERS.items() for n in numbers]


@pytest.mark.parametrize(("name", "where"), [(row[0], row[3]) for row in ROWS])
def test_a_row_names_tests_that_are_there(name: str, where: str) -> None:
    files = [ROOT / found for found in _FILE.findall(where)]
    for file in files:
        assert file.exists(), f"{name}: {file} is not there"
    code = "".join(file.read_text("utf-8") for file in files if file.suffix == ".py")
    tests = _TEST.findall(where)
    for test in tests:
        assert f"def {test}(" in code, f"{name}: {test} is in none of the files of its row"
    cases = [file for file in files if file.suffix != ".py"]
    assert tests or cases or _REASON.search(where), f"{name}: no test, and no reason"


# How a module changes files: by these methods of a path, these functions of os and shutil, or by opening one to write.
_WRITING = {
    "write_text", "write_bytes", "unlink", "rename", "replace", "renames", "mkdir", "makedirs", "rmdir", "removedirs",
    "touch", "symlink_to", "hardlink_to", "symlink", "link", "mkfifo", "mknod", "chmod", "chown", "lchmod", "utime",
    "rmtree", "move", "copy", "copy2", "copytree", "copyfile", "remove", "truncate", "ftruncate",
}  # fmt: skip
_OF_FILES = {"os", "shutil"}
_TO_WRITE = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND|['\"][^'\"]*[wax+][^'\"]*['\"]")


def writes(source: str) -> list[str]:
    """The calls in a module's source that change a file, as `line: name`; what is a text's or a value's own is none."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        of = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if name == "open":
            given = [*node.args, *(k.value for k in node.keywords if k.arg in ("mode", "flags"))]
            # Of a path its first argument is the mode, else it is the second; a file's name may look like a mode.
            modes = given if isinstance(node.func, ast.Attribute) and of not in _OF_FILES else given[1:]
            if any(_TO_WRITE.search(ast.unparse(mode)) for mode in modes):
                found.append(f"{node.lineno}: {ast.unparse(node.func)}")
            continue
        if of in _OF_FILES:
            changes = name in _WRITING
        elif name in ("replace", "copy"):
            # Of a path it takes one argument by its place; a text's takes two, a moment's, dataclass's or map's none.
            changes = isinstance(node.func, ast.Attribute) and len(node.args) == 1 and not node.keywords
        else:
            changes = isinstance(node.func, ast.Attribute) and name in _WRITING - {"move", "remove", "link"}
        if changes:
            found.append(f"{node.lineno}: {ast.unparse(node.func)}")
    return found


@pytest.mark.parametrize(
    "line",
    [
        "os.replace(a, b)", "os.open(p, os.O_WRONLY | os.O_CREAT)", "os.remove(p)", "shutil.move(a, b)",
        "shutil.copy(a, b)", "os.link(a, b)", "open(p, 'wb')", "open(p, mode='a')", "Path(p).open('w')",
        "Path(p).open(mode='r+')", "path.write_text('x')", "path.replace(other)", "path.unlink()", "path.mkdir()",
        "(root / 'x').touch()", "shutil.rmtree(folder)", "os.truncate(p, 0)",
    ],
)  # fmt: skip
def test_a_write_is_seen(line: str) -> None:
    assert writes(line)


@pytest.mark.parametrize(
    "line",
    [
        "text.replace('a', 'b')", "replace(thing, a=1)", "moment.replace(tzinfo=UTC)", "open(p)", "open('wax', 'rb')",
        "path.open('rb')", "os.open(p, os.O_RDONLY | os.O_NOFOLLOW)", "items.remove(x)", "mapping.copy()",
        "path.read_text()", "provider.open(home, fd)",
    ],
)  # fmt: skip
def test_what_is_no_write_is_none(line: str) -> None:
    assert not writes(line)


@pytest.mark.parametrize("provider", ["reconciler_hermes", "reconciler_orchestrator"])
def test_what_a_provider_does_not_own_it_does_not_write(provider: str) -> None:
    """Hermes's files are written under Hermes's interpreter (worker/), the orchestrator's by its own program."""
    assert writes((ROOT / "providers" / "reconciler_native" / "disk.py").read_text("utf-8"))  # the native home is ours
    folder = ROOT / "providers" / provider
    found = {path.name: writes(path.read_text("utf-8")) for path in folder.glob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == {}
