"""Profiles by Hermes's own functions, files without links, and a home from nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.lab import Lab, address, create, delete, resource, tree, update
from reconciler.action import CLEAR, Action, Row
from reconciler.observe import ABSENT, Observed
from reconciler.provider import Code, Step
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

pytestmark = pytest.mark.hermes


def profile(lab: Lab, name: str) -> Observed:
    found = lab.observe().at("", Kind.PROFILE, name)
    assert isinstance(found, Observed), found
    return found


def file(lab: Lab, path: str) -> Observed:
    found = lab.observe(f"default/files/{path}").at("default", Kind.FILE, path)
    return found if isinstance(found, Observed) else Observed(Kind.FILE, "default", path)


def test_a_profile_from_birth_to_trash(each: Lab) -> None:
    assert each.perform(create("coder", {"description": "Writes code."}))[0].code is Code.OK
    assert profile(each, "coder").fields == {"description": "Writes code."}
    folder = each.folder("coder")
    number = each.hermes("from hermes_cli.config import DEFAULT_CONFIG as d; print(d['_config_version'])")
    assert (folder / "config.yaml").read_text() == f"_config_version: {number}\n"
    job = each.create("a", {"schedule": {"every": "30m"}, "prompt": "x", "deliver": "local"}, "coder")
    assert each.job(job.id, "coder").profile == "coder"
    assert each.perform(update("coder", profile(each, "coder"), {"description": "New."}))[0].code is Code.OK
    assert profile(each, "coder").fields == {"description": "New."}
    assert each.perform(update("coder", profile(each, "coder"), {"description": CLEAR}))[0].code is Code.OK
    assert profile(each, "coder").fields == {}
    (folder / ".env").write_text("A_TOKEN=x\n")
    assert each.perform(delete("coder", profile(each, "coder")))[0].code is Code.OK
    assert not folder.exists()
    trash = each.root / ".reconciler-trash"
    [copy] = trash.iterdir()
    assert (copy / ".env").read_text() == "A_TOKEN=x\n"
    assert (copy / "cron" / "jobs.json").exists()
    modes = {oct(p.stat().st_mode & 0o777) for p in [trash, *copy.rglob("*")]}
    assert modes == {"0o700", "0o600"}


def test_the_default_profile_is_never_deleted(lab: Lab) -> None:
    before = tree(lab.root)
    answer = lab.perform(delete("default", profile(lab, "default")))[0]
    assert answer.code is Code.REFUSED
    assert {k: v for k, v in tree(lab.root).items() if k in before} == before


def test_a_wrapper_of_another_home_stays(lab: Lab) -> None:
    """`~/.local/bin/coder` belongs to whoever has that HOME; ours is the home's own parent."""
    lab.perform(create("coder", {}))
    lab.perform(delete("coder", profile(lab, "coder")))
    assert not (lab.root.parent / ".local").exists()


def test_a_bad_name_in_hermes_words(lab: Lab) -> None:
    answer = lab.perform(create("hermes", {}))[0]
    assert answer.code is Code.REFUSED
    assert "hermes" in answer.words
    assert lab.canon(resource("hermes", {})).refused


def test_provision_makes_what_blank_says(tmp_path: Path, each: Lab) -> None:
    lab = Lab(tmp_path / "new" / "hermes", each.version)
    assert not lab.observe().exists
    with lab.provider.open(lab.ref, _lock(tmp_path)) as door:
        [answer] = door.perform(Step(lab.ref, (Action(Row.PROVISION, address("main")),)))
    assert answer.code is Code.OK, answer.words
    assert lab.root.stat().st_mode & 0o777 == 0o700
    seen, blank = lab.observe(), lab.provider.blank(lab.ref)
    assert seen.things.keys() == blank.things.keys()
    for key, things in blank.things.items():
        there = seen.things[key]
        assert isinstance(things, dict) and isinstance(there, dict)
        assert {k: v.fields for k, v in there.items()} == {k: v.fields for k, v in things.items()}
    config = lab.hermes("from hermes_cli.config import read_raw_config as r; import json; print(json.dumps(r()))")
    assert list(config) == ["_config_version"]


def test_provision_refuses_what_is_there(lab: Lab) -> None:
    [answer] = lab.perform(Action(Row.PROVISION, address("main")))
    assert (answer.code, "adopt it instead" in answer.words) == (Code.REFUSED, True)


def _lock(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)


def test_a_file_from_birth_to_end(lab: Lab) -> None:
    path = "scripts/deep/new.sh"
    fields: dict[str, Json] = {"text": "#!/bin/sh\necho ü\n", "mode": "0755"}
    assert lab.perform(create(f"default/files/{path}", fields))[0].code is Code.OK
    assert file(lab, path).fields == fields
    assert lab.perform(update(f"default/files/{path}", file(lab, path), {"text": "x\n"}))[0].code is Code.OK
    assert file(lab, path).fields == {"text": "x\n", "mode": "0755"}
    assert lab.perform(delete(f"default/files/{path}", file(lab, path), ["text"]))[0].code is Code.OK
    assert file(lab, path).get("text") is ABSENT


def test_a_block_leaves_the_rest_alone(lab: Lab) -> None:
    soul = lab.root / "SOUL.md"
    soul.write_text("I am Ada.\n")
    soul.chmod(0o640)
    address_ = "default/files/SOUL.md"
    for text in ("Be kind.\n", "Be brief.\nBe kind.\n"):
        assert lab.perform(update(address_, file(lab, "SOUL.md"), {"block": text}))[0].code is Code.OK
        assert file(lab, "SOUL.md").fields["block"] == text
    assert soul.read_text() == (
        "I am Ada.\n\n<!-- >>> reconciler:solo >>> -->\nBe brief.\nBe kind.\n<!-- <<< reconciler:solo <<< -->\n"
    )
    assert soul.stat().st_mode & 0o777 == 0o640
    assert lab.perform(delete(address_, file(lab, "SOUL.md"), ["block"]))[0].code is Code.OK
    assert soul.read_text() == "I am Ada.\n"


def test_a_block_that_was_the_whole_file(lab: Lab) -> None:
    assert lab.perform(create("default/files/memories/USER.md", {"block": "x\n"}))[0].code is Code.OK
    assert (
        lab.perform(delete("default/files/memories/USER.md", file(lab, "memories/USER.md"), ["block"]))[0].code
        is Code.OK
    )
    assert not (lab.root / "memories" / "USER.md").exists()


def test_a_whole_file_of_ours_goes_as_it_was_seen(lab: Lab) -> None:
    """What is deleted is a whole file (a block is taken out by an update), and only the one that the plan has seen."""
    soul = lab.root / "SOUL.md"
    soul.write_text("I am Ada.\n")
    seen = file(lab, "SOUL.md")
    soul.write_text("I am Ada, edited.\n")
    assert lab.perform(delete("default/files/SOUL.md", seen))[0].code is Code.STALE
    assert soul.read_text() == "I am Ada, edited.\n"
    for path in ("SOUL.md", "scripts/disk.sh"):
        assert lab.perform(delete(f"default/files/{path}", file(lab, path)))[0].code is Code.OK
        assert not (lab.root / path).exists()


def test_links_are_not_followed(lab: Lab, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.sh").write_text("theirs\n")
    (lab.root / "hooks").symlink_to(outside)
    (lab.root / "SOUL.md").symlink_to(outside / "x.sh")
    fresh = create("default/files/hooks/x.sh", {"text": "ours\n"})
    soul = create("default/files/SOUL.md", {"text": "ours\n"})
    assert [a.code for a in lab.perform(fresh, soul)] == [Code.REFUSED, Code.REFUSED]
    assert (outside / "x.sh").read_text() == "theirs\n"
    for path in ("hooks/x.sh", "SOUL.md"):
        assert "link" in str(file(lab, path).get("text"))


def test_a_changed_file_is_stale(lab: Lab) -> None:
    seen = file(lab, "scripts/disk.sh")
    (lab.root / "scripts" / "disk.sh").write_text("by hand\n")
    assert lab.perform(update("default/files/scripts/disk.sh", seen, {"text": "x\n"}))[0].code is Code.STALE
    assert lab.perform(create("default/files/scripts/disk.sh", {"text": "x\n"}))[0].code is Code.STALE
    assert (lab.root / "scripts" / "disk.sh").read_text() == "by hand\n"


def test_the_soul_that_hermes_has_just_made_is_no_obstacle(lab: Lab) -> None:
    soul = lab.hermes("import json, hermes_cli.default_soul as s; print(json.dumps(s.DEFAULT_SOUL_MD))")
    (lab.root / "SOUL.md").write_text(soul)
    assert lab.perform(create("default/files/SOUL.md", {"text": "I am Ada.\n"}))[0].code is Code.OK
    assert (lab.root / "SOUL.md").read_text() == "I am Ada.\n"


def test_torn_markers_are_refused(lab: Lab) -> None:
    (lab.root / "SOUL.md").write_text("<!-- >>> reconciler:solo >>> -->\nx\n")
    assert "do not pair up" in str(file(lab, "SOUL.md").get("block"))
    assert lab.perform(update("default/files/SOUL.md", file(lab, "SOUL.md"), {"block": "x\n"}))[0].code is Code.REFUSED
