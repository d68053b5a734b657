"""The documentation says what is so: generated pages are up to date, links lead somewhere, commands parse."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from reconciler.cli.examples import EXAMPLES
from reconciler_specs.address import Kind
from reconciler_specs.home import BY_KIND
from scripts.session import read

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
LONGEST = 250  # lines of a page that is not generated

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"\breconciler (?=[a-z])")
_TEST_FILE = re.compile(r"`(tests/[\w/.*-]+)`")
_TEST_NAME = re.compile(r"`(test_\w+)`")
# Machines and registries have no place in the pages. Documentation may name GitHub and a made-up home.
_NOWHERE = re.compile(
    r"(?<![\w.~])/(?:work|root|home/\w+|Users/\w+)/|pypi\.org|files\.pythonhosted|artifactory|\bnexus\b"
)


def page(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def docs_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tool", ROOT / "tools" / "docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_reference_is_up_to_date() -> None:
    made: dict[str, str] = docs_tool().pages()
    assert sorted(made) == sorted(p.name for p in (DOCS / "reference").glob("*.md"))
    for name, text in made.items():
        assert page(DOCS / "reference" / name) == text, f"{name}: run make docs"


def test_the_matrix_asks_about_every_field() -> None:
    asked = docs_tool().FIELDS
    for kind in asked:
        fields = {name for name, field in BY_KIND[kind].items() if field.field}
        assert set(asked[kind]) == (fields if kind is not Kind.PROFILE else {"description"}), kind


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_links(path: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", page(path))):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), f"{link}: nothing is there"
        assert there.is_relative_to(ROOT), link
        if anchor:
            heads = [re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in _heads(there)]
            assert anchor in heads, f"{link}: no such heading"


def _heads(path: Path) -> list[str]:
    return re.findall(r"^#+ (.*)$", page(path), re.MULTILINE)


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_no_machine_and_no_registry(path: Path) -> None:
    found = _NOWHERE.search(page(path))
    assert found is None, found


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_pages_stay_short(path: Path) -> None:
    if "reference" not in path.parts:
        assert len(page(path).splitlines()) <= LONGEST


def commands_in(text: str) -> Iterator[str]:
    """Every `reconciler …` of a page: a line of a code block up to a comment or pipe, or a span in the text."""
    for language, block in _FENCE.findall(text):
        if language in ("", "console", "sh", "bash"):
            for line in block.splitlines():
                if found := _COMMAND.search(line.split(" #")[0].split("|")[0].split(">")[0]):
                    yield line.split(" #")[0].split("|")[0].split(">")[0][found.start() :].strip()
    for span in re.findall(r"`([^`\n]+)`", _FENCE.sub("", text)):
        if span.startswith("reconciler "):
            yield span


def brought() -> dict[str, Any]:
    """The commands that providers bring along."""
    program = typer.Typer()
    for entry in entry_points(group="reconciler.commands"):
        entry.load()(program)
    found = dict(getattr(typer.main.get_command(program), "commands", {}))
    verbs = {f"{name} {verb}": c for name, group in found.items() for verb, c in getattr(group, "commands", {}).items()}
    return {**found, **verbs}


@pytest.mark.parametrize("path", PAGES, ids=ids)
def test_commands_parse(path: Path) -> None:
    if "reference" not in path.parts:
        _they_parse(commands_in(page(path)))


def test_a_next_command_can_be_typed_as_it_stands() -> None:
    """What the sessions print after `next:`; words that are no part of a command stand behind a `#`."""
    said = {
        line.strip().removeprefix("next: ").removeprefix("hint: ")
        for path in sorted((ROOT / "tests" / "scripts").glob("*.txt"))
        for line in page(path).splitlines()
        if line.strip().startswith(("next: reconciler ", "hint: reconciler "))
    }
    commands = [command.strip() for line in said for command in line.partition("  #")[0].split(";")]
    assert commands
    for command in commands:
        assert command == command.rstrip(",.") and "(" not in command and ", " not in command, command
    _they_parse(commands)


def _they_parse(lines: Iterable[str]) -> None:
    known: dict[str, Any] = {**docs_tool().commands(), **brought()}
    for line in lines:
        words = shlex.split(line.replace("[OPTIONS]", "").replace("…", ""))[1:]
        name = " ".join(words[:2]) if words[0] in ("state", "gitops", "native") else words[0]
        if words[-1] == "--help" or name in ("--version", "state", "gitops"):
            continue
        assert name in known, f"{line}: no such command"
        options = {o: p for p in known[name].params for o in (*p.opts, *p.secondary_opts) if o.startswith("-")}
        for word in words:
            if word.startswith("-"):
                assert word.partition("=")[0] in options, f"{line}: no option {word}"


def references() -> Iterator[tuple[str, str]]:
    """(page, row) of the two tables that say where each case is tested."""
    for name in ("edge_cases.md", "field_reports.md"):
        for line in page(DOCS / name).splitlines():
            if re.match(r"\| [EF]\d+ \|", line):
                yield name, line


@pytest.mark.parametrize(("name", "row"), list(references()), ids=lambda v: v.split(" |")[0][2:] if "|" in v else "")
def test_every_case_names_what_is_there(name: str, row: str) -> None:
    where = row.rsplit(" | ", 1)[1]
    files = [ROOT / found for found in _TEST_FILE.findall(where)]
    for file in files:
        assert file.exists(), f"{name}: {file}"
    tests = "".join(page(f) for f in files if f.suffix == ".py")
    for test in _TEST_NAME.findall(where):
        assert f"def {test}(" in tests, f"{name}: {test} is in none of the files of its row"
    assert files or _LINK.search(where) or "not in this release" in where or "as F" in where, row


def test_every_number_is_there() -> None:
    for name, letter, last in (("edge_cases.md", "E", 52), ("field_reports.md", "F", 20)):
        found = re.findall(rf"^\| {letter}(\d+) \|", page(DOCS / name), re.MULTILINE)
        assert [int(n) for n in found] == list(range(1, last + 1))


SHOWN = {
    "tutorial.md": "hermes_tutorial.txt",
    "tutorial_native.md": "native_tutorial.txt",
    "many_homes.md": "many_homes.txt",
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_shows_what_is_printed(name: str) -> None:
    """Each command of the page is one of its session, in order, and each line shown is a line of its output."""
    session = read(ROOT / "tests" / "scripts" / SHOWN[name])
    rest = iter(session.commands)
    for language, block in _FENCE.findall(page(DOCS / name)):
        if language != "console":
            continue
        output: list[str] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                command = next((c for c in rest if c.line == line.removeprefix("$ ")), None)
                assert command is not None, f"{line}: not in the session, or not in this order"
                output = [*command.output.splitlines(), f"[exit {command.code}]"]
            else:
                assert line in output, f"not printed: {line}"


@pytest.mark.parametrize("name", SHOWN)
def test_a_pages_setup_is_its_sessions(name: str) -> None:
    session = read(ROOT / "tests" / "scripts" / SHOWN[name])
    blocks = [block for language, block in _FENCE.findall(page(DOCS / name)) if language == "yaml"]
    assert blocks[0] == session.files["setup.yaml"]
    for other in session.files.keys() - {"setup.yaml"}:
        assert session.files[other].strip() in page(DOCS / name)


def test_help_says_whole_sentences() -> None:
    """At 80 columns no command's line in `--help` is cut off with dots."""
    from reconciler.cli.app import add_commands, app

    add_commands()
    program: Any = typer.main.get_command(app)
    groups = [program, *(program.commands[name] for name in ("state", "gitops", "native"))]
    for group in groups:
        room = 80 - 2 - 6 - max(map(len, group.commands))
        cut = [name for name, command in group.commands.items() if command.get_short_help_str(room).endswith("...")]
        assert not [name for name in cut if "." not in name]  # a verb's help is the list of its arguments


def test_examples_of_help_parse_and_fit() -> None:
    _they_parse(line.partition("  #")[0].partition(" #")[0] for lines in EXAMPLES.values() for line in lines)
    assert all(name in line.split() for name, lines in EXAMPLES.items() for line in lines)
    assert max(len(line) for lines in EXAMPLES.values() for line in lines) <= 76


def test_every_decision_is_numbered() -> None:
    numbers = [int(p.name[:4]) for p in sorted((DOCS / "decisions").glob("*.md"))]
    assert numbers == list(range(1, len(numbers) + 1))
