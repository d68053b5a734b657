"""Hostile names, values and links: stored exactly or refused by name, escaped on the way out, never followed (L18)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from faults.rig import SECOND, Rig, contents, settled, snapshot, trouble

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


def _declare(rig: Rig, name: str, prompt: str) -> None:
    job = {"name": name, "schedule": {"every": "2h"}, "prompt": prompt, "deliver": "local"}
    text = yaml.safe_dump({"jobs": {"brief": job}}, allow_unicode=False, width=10_000_000)
    rig.setup(text)


@pytest.mark.parametrize("group", [VALUES, REFUSED_OR_EXACT], ids=["odd", "unfit for a terminal"])
def test_prompts_are_stored_exactly_or_refused(bare: Rig, group: dict[str, str]) -> None:
    """L5 of output, L10: what the home then holds is what was declared, byte for byte; else the setup or Hermes has
    refused it, with the address. One worker per value, so all of a group in one home."""
    jobs = {
        f"j{n}": {"schedule": {"every": "2h"}, "prompt": value, "deliver": "local"}
        for n, value in enumerate(group.values())
    }
    stored = 0
    for key, job in jobs.items():
        bare.setup(yaml.safe_dump({"jobs": {key: job}}, allow_unicode=False, width=10_000_000))
        done = bare.cli("plan")
        assert not trouble(done), done.err
        if done.code == 1:
            assert "brief" in done.err or key in done.err or "setup.yaml" in done.err, done.err
            continue
        outcomes = {str(e.address): (str(e.outcome), e.reason) for e in bare.apply() if e.what == "outcome"}
        what, why = outcomes.get(f"main/default/jobs/{key}", ("held", ""))
        found = [j["prompt"] for j in bare.jobs() if j["name"] == key]
        if what == "applied":
            stored += 1
            assert found == [job["prompt"]]
            assert not bare.rows(), "a perpetual difference (L6)"
        else:
            assert what in ("refused", "not-applied", "held"), (key, what, why)
            assert what != "refused" or why
            assert not found or what == "not-applied", (key, what, why, found)
        bare.setup("jobs: {}\n")
        bare.apply()
    assert stored >= 4 or group is REFUSED_OR_EXACT
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
    before = contents(outside) | {"names": os.listdir(outside)}
    events = [e for e in bare.apply() if e.outcome and str(e.row) not in ("adopt",)]
    assert contents(outside) | {"names": os.listdir(outside)} == before
    assert not [e for e in events if str(e.outcome) == "applied"], events
    assert link.is_symlink()
    done = bare.cli("plan", "--detailed-exitcode")
    assert (done.code in (3, 4), trouble(done)) == (True, []), done.text
    assert "link" in done.text or path in done.text, done.text


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
        done = bare.cli("validate")
        assert (done.code, trouble(done)) == (1, []), (key, done.text)
        assert "setup.yaml:" in done.text
    for name in ("../../etc/cron.d/x", "/etc/passwd", "scripts/../../x", "cron/jobs.json", "config.yaml", ".env"):
        bare.setup(yaml.safe_dump({"files": {name: {"text": "x"}}}))
        done = bare.cli("apply", "main", "--yes")
        assert (done.code in (1, 4), trouble(done)) == (True, []), (name, done.text)
        assert not (bare.root / "etc").exists() and not (bare.home / "cron" / "jobs.json").exists()


def test_names_that_look_alike(rig: Rig) -> None:
    """L1: names fold by case only to suggest: two owned jobs with one name stay two, by id."""
    rig.setup(SECOND.replace("prompt: Water.", "name: Brief, prompt: Water."))
    rig.apply()
    assert sorted(j["name"] for j in rig.jobs()) == ["Brief", "brief"]
    settled(rig)
