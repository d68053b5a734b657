"""Hostile names, values and links: stored exactly or refused by name, escaped on the way out, never followed (L18)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
import yaml

from faults.rig import SECOND, Rig, contents, settled, snapshot, trouble
from reconciler_specs.errors import SpecError

pytestmark = pytest.mark.hermes

VALUES = {
    "shell": "$(touch /tmp/pwned); `id` && rm -rf / | cat > x; ${HOME} $HOME %s {0} \\ \\n '\" !",
    "emoji": "👩‍💻 café naïve 日本語 ﷽ 𝔘",
    "yaml": "yes\n- a: {b: [c]}\n# no comment\n---\n...\n&x *x !tag | >",
    "json": '{"jobs": [], "id": "x"}, null, 12:30, 0o17, 1e5',
    "path": "../../../etc/passwd\n~root/.ssh",
    "lines": "one\ntwo\n\n\nthree\n",
    "tabs": "\ta\t\tb  c",
    "long": "word " * 200_000,  # 1 MB
}
REFUSED_OR_EXACT = {
    "ANSI": "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "bidi": "abc\u202edef\u2066x\u2069",
    "controls": "a\x01b\x08c\x7f\x9b",
    "lone CR": "a\rb",
    "invisible": "a\u200bb\ufeffc\U000e0041",
    "end of line of Unicode": "a\u2028b\u2029c\x85d",
}


@pytest.mark.parametrize("group", [VALUES, REFUSED_OR_EXACT], ids=["odd", "unfit for a terminal"])
def test_prompts_are_stored_exactly_or_refused(bare: Rig, group: dict[str, str]) -> None:
    """L6, L10: what the home then holds is what was declared, byte for byte; else the setup or Hermes has refused it
    by its address. Nothing of it is run, and nothing unfit is printed."""
    fit = {}
    for number, prompt in enumerate(group.values()):
        job = {"schedule": {"every": "2h"}, "prompt": prompt.replace("$(", "$$("), "deliver": "local"}
        bare.setup(yaml.safe_dump({"jobs": {f"j{number}": job}}, allow_unicode=False, width=10_000_000))
        try:
            bare.plan()
        except SpecError as error:
            assert f"j{number}" in str(error), error
        else:
            fit[f"j{number}"] = job
    bare.setup(yaml.safe_dump({"jobs": fit}, allow_unicode=False, width=10_000_000))
    done = bare.cli("apply", "main", "--yes")
    assert not trouble(done), done.err
    assert not [c for c in done.text if c in "\x1b\x07\x9b\u202e\u2028\r"]
    prompts = {j["name"]: j["prompt"] for j in bare.jobs()}
    left = bare.rows()
    for key, job in fit.items():
        if key in prompts:
            assert prompts[key] == str(job["prompt"]).replace("$$(", "$(")
            assert f"main/default/jobs/{key}" not in left, "a perpetual difference (L6)"
        else:
            assert f"main/default/jobs/{key}  create  refused" in done.out or left[f"main/default/jobs/{key}"].hold
    assert len(prompts) >= 5 or group is REFUSED_OR_EXACT, done.out
    assert not Path("/tmp/pwned").exists()


def test_a_hostile_home_is_shown_escaped(rig: Rig) -> None:
    """7. of “What must work”: what a job of the home says reaches the terminal escaped, in every command."""
    bad = "\x1b[2J\x1b[31mred\u202e\x9b1m\r\x07 𝔘 \ud800 \u2028"
    rig.edit_jobs(lambda jobs: jobs[0].update(name=bad, prompt=bad, workdir=bad, skills=[bad], deliver=bad))
    rig.edit_jobs(lambda jobs: jobs.append({**jobs[0], "id": bad}))
    (rig.home / "active_profile").write_text("\x1b[31mwork\n")
    (rig.home / "profiles" / "\x1b[31mevil").mkdir(parents=True)
    commands: list[tuple[str, ...]] = [
        ("plan", "--unmanaged"),
        ("plan", "--json"),
        ("status", "--json"),
        ("show", "main/default/jobs/brief"),
        ("adopt", str(rig.home), "--as", "other", "--print", "--all"),
        ("doctor", "main"),
    ]
    for command in commands:
        done = rig.cli(*command)
        assert not trouble(done), (command, done.text)
        unfit = [c for c in done.text if c in "\x1b\x07\x9b\u202e\u2028\r"]
        assert not unfit, (command, unfit)
        assert done.code in (0, 3), (command, done.text)
        if "--json" in command:
            json.loads(done.out)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("SOUL.md", "files: {SOUL.md: {text: 'New.'}}"),
        ("scripts", "files: {scripts/disk.sh: {text: 'df'}}"),
        ("memories", "files: {memories/USER.md: {text: 'Tea.'}}"),
        ("cron", "jobs: {brief: {schedule: {every: 2h}, prompt: x, deliver: local}}"),
        ("cron/jobs.json", "jobs: {brief: {schedule: {every: 2h}, prompt: x, deliver: local}}"),
    ],
)
@pytest.mark.parametrize("empty", [False, True], ids=["", "dangling"])
def test_a_link_that_leads_out_is_not_written_through(bare: Rig, path: str, body: str, empty: bool) -> None:
    """L17, L18: SOUL.md, scripts, memories, cron as links to elsewhere: what they lead to keeps every byte, and the
    row says why."""
    outside = bare.root / "outside"
    outside.mkdir()
    link = bare.home / path
    link.parent.mkdir(exist_ok=True)
    if link.exists():
        link.unlink()
    target = outside / "there"
    if not empty and path in ("SOUL.md", "cron/jobs.json"):
        target.write_text('{"jobs": []}\n')
    elif not empty:
        target.mkdir()
    link.symlink_to(target)
    bare.setup(body)
    before = contents(outside) | {"names": sorted(outside.iterdir())}
    events = [e for e in bare.apply() if e.outcome and str(e.row) not in ("adopt",)]
    assert contents(outside) | {"names": sorted(outside.iterdir())} == before
    assert not [e for e in events if str(e.outcome) == "applied"], events
    assert link.is_symlink()
    [plan] = bare.plan().homes
    assert not plan.open and "link" in f"{plan.hold} {plan.failed} {plan.actions}", plan


def test_a_profile_that_is_a_link_out(bare: Rig) -> None:
    """L17: `profiles/x -> /outside`: nothing in it is read as this home's or written."""
    outside = bare.root / "outside"
    bare.make_home(home=outside)
    (bare.home / "profiles").mkdir()
    (bare.home / "profiles" / "work").symlink_to(outside)
    bare.setup("settings: {agent.note: x}")
    text = bare.file.read_text() + "      work:\n        settings: {agent.note: x}\n        jobs: {brief: {schedule: {every: 2h}, prompt: x, deliver: local}}\n"  # fmt: skip  # noqa: E501
    bare.file.write_text(text)
    before = snapshot(outside)
    bare.apply()
    assert snapshot(outside) == before
    done = bare.cli("plan")
    assert not trouble(done), done.text
    assert "link" in done.text, done.text


def test_keys_that_are_no_names(bare: Rig) -> None:
    """Addresses are words: a key with `..`, a slash, a control character or a hash is refused with its line."""
    for key in ("../x", "a/b", "a\tb", "a#b", "", "\u202ea", ".."):
        bare.setup(yaml.safe_dump({"jobs": {key: {"schedule": {"every": "2h"}, "prompt": "x", "deliver": "local"}}}))
        with pytest.raises(SpecError, match=r"setup\.yaml:\d+:"):
            bare.plan()
    done = bare.cli("validate")
    assert (done.code, trouble(done)) == (1, []), done.text
    for name in ("../../etc/cron.d/x", "/etc/passwd", "scripts/../../x", "cron/jobs.json", "config.yaml", ".env"):
        bare.setup(yaml.safe_dump({"files": {name: {"text": "x"}}}))
        before = snapshot(bare.home)
        with contextlib.suppress(SpecError):
            assert not [e for e in bare.apply() if str(e.outcome) == "applied" and str(e.row) != "adopt"]
        assert snapshot(bare.home) == before


def test_names_that_look_alike(rig: Rig) -> None:
    """L1: names fold by case only to suggest: two owned jobs with one name stay two, by id."""
    rig.setup(SECOND.replace("prompt: Water.", "name: Brief, prompt: Water."))
    rig.apply()
    assert sorted(j["name"] for j in rig.jobs()) == ["Brief", "brief"]
    settled(rig)
