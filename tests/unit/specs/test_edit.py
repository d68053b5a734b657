"""Edits keep comments and order, change what they name and nothing else, and are written safely."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler_specs.address import Address
from reconciler_specs.document import Document
from reconciler_specs.edit import EditRefused, SetupEditor, same
from reconciler_specs.load import load
from reconciler_specs.shape import Json

TEXT = """\
# What the agents do.
version: 1
name: solo   # the owner

templates:
    client:
        harness: hermes
        profiles:
            default:
                inference: {models: {front: {provider: p, model: m}}, default: front}   # one line
                jobs: {standup: {schedule: {every: 1d}, prompt: Post., deliver: local}}
homes:
    # the first
    main:
        extends: [client]
        path: ~/.hermes       # where it is
        profiles:
            default:
                files:
                    SOUL.md: {block: content/rules.md}
                    plain.txt: {text: hello}
                settings:
                    agent."max_turns": 0x10   # sixteen
                    date: 2031-02-03
                    odd: [0123, 1e3, ~, yes, "no"]
                jobs:
                    # every morning
                    brief:
                        schedule: {cron: "0 8 * * *"}
                        prompt: |
                            Read,
                            then write.
                        deliver: owner_chat
                        skills:
                        - a     # first
                        - b

# the end
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "content").mkdir()
    (tmp_path / "content/rules.md").write_text("Be kind.\n")
    path = tmp_path / "setup.yaml"
    path.write_text(TEXT)
    path.chmod(0o640)
    return path


def capture(path: Path, address: str, field: str, value: Json) -> SetupEditor:
    setup = load(path)
    editor = SetupEditor(path)
    editor.capture(setup, Address.parse(address), field, value)
    editor.write()
    found = load(path).desired("main")[Address.parse(address)].fields[field]
    assert same(found, value)
    return editor


def changed(path: Path, before: str = TEXT) -> tuple[list[str], list[str]]:
    """The lines that are gone and the lines that are new."""
    old, new = before.splitlines(), path.read_text().splitlines()
    return [x for x in old if x not in new], [x for x in new if x not in old]


def test_nothing_edited_nothing_written(path: Path) -> None:
    editor = SetupEditor(path)
    editor.set(("name",), "solo")
    assert editor.write() == []
    assert path.read_text() == TEXT


def test_capture_in_place(path: Path) -> None:
    capture(path, "main/default/jobs/brief", "prompt", "Write: #ops\nnow.\n")
    gone, new = changed(path)
    assert gone == ["                            Read,", "                            then write."]
    assert new == ["                            Write: #ops", "                            now."]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize(
    "text",
    [
        "no", "0123", "1e3", "12:30", "~", "# x", "a: b", "- a", "*x", " lead", "x ", "", "a\nb", "$(x)", "{{x}}",
        "2031-02-03", "'q'", '"q"', "tab\tx", "back\\slash", "ä😀", "\n\nx\n\n", "=", "<<", "y", "a #b", "!x", "%x",
        "`x", "@x", "|", ">", "?", "- ", "x:", "null",
    ],
)  # fmt: skip
def test_capture_any_text(path: Path, text: str) -> None:
    capture(path, "main/default/files/plain.txt", "text", text)
    gone, _ = changed(path)
    assert gone in ([], ["                    plain.txt: {text: hello}"])


def test_capture_of_a_templates_value_is_an_override(path: Path) -> None:
    setup, editor = load(path), SetupEditor(path)
    spot = editor.capture(setup, Address.parse("main/default/jobs/standup"), "prompt", "Write.")
    assert spot.note == "an override in the home, of template client"
    editor.write()
    assert changed(path)[0] == []
    job = load(path).desired("main")[Address.parse("main/default/jobs/standup")]
    assert (job.fields["prompt"], job.fields["schedule"]) == ("Write.", {"every": "1d"})


def test_capture_of_a_block_edits_its_source(path: Path) -> None:
    setup, editor = load(path), SetupEditor(path)
    spot = editor.capture(setup, Address.parse("main/default/files/SOUL.md"), "block", "Be nice.\n")
    assert spot.path == ()
    assert "content/rules.md" in spot.note
    assert [p.name for p in editor.write()] == ["rules.md"]
    assert path.read_text() == TEXT
    assert (path.parent / "content/rules.md").read_text() == "Be nice.\n"


def test_capture_of_a_setting_keeps_its_spelling(path: Path) -> None:
    capture(path, "main/default/settings/agent.max_turns", "value", 17)
    assert changed(path) == (
        ['                    agent."max_turns": 0x10   # sixteen'],
        ['                    agent."max_turns": 17     # sixteen'],
    )


def test_capture_of_a_schedule(path: Path) -> None:
    capture(path, "main/default/jobs/brief", "schedule", {"cron": "*/5 * * * *"})
    assert '                        schedule: {cron: "*/5 * * * *"}' in path.read_text()


def test_capture_of_a_model_names_it(path: Path) -> None:
    capture(
        path,
        "main/default/inference",
        "default",
        {"provider": "q", "model": "vendor/Big Model", "key": {"secret": "K"}},
    )
    assert "default: big-model" in path.read_text()
    setup, editor = load(path), SetupEditor(path)
    models = [{"provider": "p", "model": "m"}, {"provider": "r", "model": "big-model"}]
    editor.capture(setup, Address.parse("main/default/inference"), "fallbacks", models)
    editor.write()
    assert "fallbacks: [front, big-model-2]" in path.read_text()
    assert load(path).desired("main")[Address.parse("main/default/inference")].fields["fallbacks"] == models


def test_capture_of_context(path: Path) -> None:
    setup, editor = load(path), SetupEditor(path)
    editor.capture(setup, Address.parse("main/default/jobs/brief"), "context_from", ["default/jobs/standup", "self"])
    assert "context_from: [standup, self]" in editor.text()


def test_remove(path: Path) -> None:
    editor = SetupEditor(path)
    editor.remove(("homes", "main", "profiles", "default", "jobs", "brief", "skills"))
    editor.remove(("homes", "main", "profiles", "nobody", "jobs"))
    editor.write()
    assert "skills" not in path.read_text()
    assert "# every morning" in path.read_text()
    before = path.read_text()
    editor = SetupEditor(path)
    editor.remove(("homes", "main", "profiles", "default", "settings"))
    editor.write()
    assert "settings" not in path.read_text()
    assert len(path.read_text().splitlines()) < len(before.splitlines())


HOME = {
    "harness": "hermes",
    "path": "/srv/$(x)",
    "profiles": {"default": {"jobs": {"b": {"schedule": {"every": "2h"}, "prompt": "a\n  b\n", "deliver": "local"}}}},
}


def test_add_home(path: Path) -> None:
    editor = SetupEditor(path)
    editor.add_home("two", HOME)
    editor.write()
    assert changed(path)[0] == []
    home = load(path).homes["two"]
    assert home.path == "/srv/$(x)"
    assert home.resources[Address.parse("two/default/jobs/b")].fields["prompt"] == "a\n  b\n"
    with pytest.raises(EditRefused, match="declared already"):
        SetupEditor(path).add_home("two", HOME)


def test_add_home_to_a_json_setup(tmp_path: Path) -> None:
    path = tmp_path / "setup.json"
    path.write_text('{"version": 1, "name": "a", "homes": {"m": {"harness": "hermes", "path": "/x"}}}')
    editor = SetupEditor(path)
    editor.add_home("two", HOME)
    editor.write()
    assert list(load(path).homes) == ["m", "two"]


def test_line_ends_stay(path: Path) -> None:
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    capture(path, "main/default/jobs/brief", "workdir", "/x")
    data = path.read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n")


def test_a_file_changed_meanwhile(path: Path) -> None:
    editor = SetupEditor(path)
    editor.set(("name",), "other")
    path.write_text(TEXT + "\n")
    with pytest.raises(EditRefused, match="changed while"):
        editor.write()
    assert path.read_text() == TEXT + "\n"


def test_an_alias_is_not_edited_in_two_places(path: Path) -> None:
    path.write_text("version: 1\nname: a\nx-a: &a {b: 1}\nx-c: *a\nhomes: {m: {harness: hermes, path: /x}}\n")
    editor = SetupEditor(path)
    editor.set(("x-c", "b"), 2)
    with pytest.raises(EditRefused, match="more than it names"):
        editor.write()


def test_a_path_through_a_text(path: Path) -> None:
    with pytest.raises(EditRefused, match="no map"):
        SetupEditor(path).set(("name", "x"), 1)


_TEXTS = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t#:-{}[]'\"$(%@"),
    max_size=20,
)
_KEYS = st.text("abc .:#-0", min_size=1, max_size=4)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(_VALUES)
def test_any_value_reads_back(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(TEXT)
    editor = SetupEditor(path)
    editor.set(("x-value",), value)
    text = editor.text()
    read = Document.parse(text).root.plain(nulls=True)["x-value"]
    assert same(_unescaped(read), value)
    comments = [line.partition("#")[2] for line in TEXT.splitlines() if "#" in line]
    assert all(comment in text for comment in comments)


def _unescaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("$$(", "$(")
    if isinstance(value, dict):
        return {k: _unescaped(v) for k, v in value.items()}
    return [_unescaped(v) for v in value] if isinstance(value, list) else value
