"""A real home from nothing to a running one: made, written while it is stopped, and written through its gateway.

The chapters go on from each other's end, since each start of a gateway costs ten seconds.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from openclaw import lab as labs
from reconciler.consent import Consent
from reconciler.event import Event
from reconciler.plan import Options
from reconciler.testing.kit import Kit, World, outcomes, tree
from reconciler_openclaw import authored, home, jobs, serving, statedb
from reconciler_openclaw.provider import OpenClawProvider

pytestmark = pytest.mark.openclaw


class Story(World):
    """The setup grows from test to test; `lab` is the home's gateway, where one runs."""

    lab: labs.Lab

    def setup(self, profiles: str, first: str = "adopt", door: str = "") -> str:
        words = f"openclaw: {labs.program(self.lab.version)}, node: {labs.NODE}{door}"
        body = "".join(f"      {line}\n" for line in profiles.strip().splitlines())
        return (
            f"version: 1\nname: solo\nhomes:\n  main:\n    harness: openclaw\n    path: {self.lab.root}\n"
            f"    door: {{{words}}}\n    first_contact: {first}\n    profiles:\n{body}"
        )

    def config(self) -> dict[str, Any]:
        return dict(authored.read(home.locate(self.lab.ref().place, str(self.lab.root))).tree)

    def agents(self) -> dict[str, dict[str, Any]]:
        """The roster in either form, by id."""
        found = self.config().get("agents", {})
        if "list" in found:
            return {entry["id"]: entry for entry in found["list"]}
        return dict(found.get("entries", {}))

    def stored(self) -> dict[str, str]:
        rows = statedb.read(home.locate(self.lab.ref().place, str(self.lab.root))).rows
        return {row.id: str(row.job["name"]) for row in rows if not jobs.own(row.job)}

    def holds_no_gateway(self) -> bool:
        return serving.find(home.locate(self.lab.ref().place, str(self.lab.root))) is None


MADE = "default: {}"
STOPPED = """
default:
  inference: {models: {daily: {provider: anthropic, model: claude-sonnet-5}}, default: daily}
  settings: {logging.level: warn, gateway.port: PORT}
"""
JOB = """
  jobs:
    brief: {schedule: {every: 2h}, prompt: Write the brief., deliver: local}
"""
OPS = """
ops:
  description: Runs things.
  inference: {models: {strong: {provider: anthropic, model: claude-opus-5}}, default: strong}
  files:
    SOUL.md: {text: "Be brief.\\n"}
    scripts/disk.sh: {text: "df\\n", mode: "0755"}
  jobs:
    disk: {schedule: {cron: "5 * * * *", tz: UTC}, run: disk.sh, deliver: local}
"""


def told(events: list[Event]) -> dict[str, str]:
    return {path: f"{found}" for path, found in outcomes(events).items()}


def a_home_is_made_from_nothing_and_its_token_is_nowhere_else(story: Story) -> None:
    story.converge(story.setup(MADE, first="provision"))
    config = story.lab.root / "openclaw.json"
    token = json.loads(config.read_text())["gateway"]["auth"]["token"]
    assert (config.stat().st_mode & 0o777, story.lab.root.stat().st_mode & 0o777) == (0o600, 0o700)
    for path in (story.root / "state").rglob("*"):
        assert path.is_dir() or token.encode() not in path.read_bytes(), path
    assert story.lab.cli("config", "validate").returncode == 0


def the_config_of_a_stopped_home_is_written_by_its_command_line(story: Story) -> None:
    story.converge(story.setup(STOPPED.replace("PORT", str(story.lab.port))))
    config = story.config()
    assert config["gateway"]["port"] == story.lab.port
    assert config["logging"] == {"level": "warn"}
    assert config["agents"]["defaults"]["model"] == {"primary": "anthropic/claude-sonnet-5"}
    assert not story.lab.root.joinpath("state", "openclaw.sqlite").exists() or story.holds_no_gateway()


def what_the_command_line_refuses_comes_back_in_its_words_and_the_rest_is_written(story: Story) -> None:
    text = STOPPED.replace("PORT", str(story.lab.port)).replace("level: warn", "level: info")
    if story.lab.version == labs.OLD:  # the same code, and three more starts of a slow program
        story.converge(story.setup(text))
        return
    text = text.replace("level: info", "level: info, logging.nonsense: 1")
    events = story.apply(story.setup(text))
    assert told(events) == {
        "default/settings/logging.level": "applied",
        "default/settings/logging.nonsense": "refused",
    }
    (wrong,) = [event for event in events if str(event.outcome) == "refused"]
    assert "nonsense" in wrong.reason
    assert story.config()["logging"] == {"level": "info"}


def a_job_of_a_stopped_home_is_made_through_a_quiet_gateway_that_is_gone_then(story: Story) -> None:
    text = STOPPED.replace("PORT", str(story.lab.port)).replace("level: warn", "level: info") + JOB
    before = (story.lab.root / "openclaw.json").read_bytes()
    story.converge(story.setup(text))
    assert list(story.stored().values()) == ["brief"]
    assert story.holds_no_gateway()
    assert (story.lab.root / "openclaw.json").read_bytes() == before
    assert story.apply(story.setup(text)) == []


def a_running_home_gets_an_agent_with_all_that_it_has(story: Story) -> None:
    config = story.lab.root / "openclaw.json"
    drawn = json.loads(config.read_text())["gateway"]["auth"]["token"]
    config.write_text(config.read_text().replace(drawn, labs.TOKEN))  # the tests' own client knows that one
    story.lab.start()
    text = STOPPED.replace("PORT", str(story.lab.port)).replace("level: warn", "level: info") + JOB + OPS
    story.converge(story.setup(text))
    ops = story.agents()["ops"]
    assert ops["description"] == "Runs things."
    assert ops["model"] in ("anthropic/claude-opus-5", {"primary": "anthropic/claude-opus-5"})
    workspace = Path(ops["workspace"])
    assert (workspace / "SOUL.md").read_text() == "Be brief.\n"
    assert (workspace / "scripts" / "disk.sh").stat().st_mode & 0o777 == 0o755
    (disk,) = [job for job in story.lab.jobs().values() if job["name"] == "disk"]
    assert (disk["agentId"], disk["payload"]["argv"]) == ("ops", [str(workspace / "scripts" / "disk.sh")])
    before = tree(story.root / "state")
    assert story.apply(story.setup(text)) == []
    assert tree(story.root / "state") == before


def a_file_changes_under_its_hash_and_comments_are_kept_aside(story: Story) -> None:
    config = story.lab.root / "openclaw.json"
    config.write_text("// by hand\n" + config.read_text())
    text = STOPPED.replace("PORT", str(story.lab.port)).replace("level: warn", "level: error") + JOB
    text += OPS.replace("Be brief", "Be kind")
    rows = story.rows(story.setup(text))
    assert {path: row.guard for path, row in rows.items()} == {
        "default/settings/logging.level": "comment-loss",
        "ops/files/SOUL.md": "",  # a file of a workspace is not in openclaw.json
    }
    assert told(story.apply(story.setup(text))) == {"ops/files/SOUL.md": "applied"}
    assert config.read_text().startswith("// by hand")
    events = story.apply(story.setup(text), Options(allow=frozenset({"comment-loss"})))
    assert told(events) == {"default/settings/logging.level": "applied"}
    assert story.rows(story.setup(text)) == {}
    assert not config.read_text().startswith("// by hand")
    (kept,) = (story.lab.root / ".reconciler-trash").iterdir()
    assert kept.read_text().startswith("// by hand")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (Path(story.agents()["ops"]["workspace"]) / "SOUL.md").read_text() == "Be kind.\n"


def a_setting_that_restarts_the_gateway_is_waited_for(story: Story) -> None:
    text = STOPPED.replace("PORT", str(story.lab.port)).replace(
        "level: warn", "level: error, gateway.customBindHost: 127.0.0.1"
    )
    text = story.setup(text + JOB + OPS.replace("Be brief", "Be kind"))
    story.converge(text)
    assert story.config()["gateway"]["customBindHost"] == "127.0.0.1"
    assert len(story.lab.jobs()) >= 2


def a_model_that_openclaw_does_not_know_is_refused_in_its_words(story: Story) -> None:
    if story.lab.version == labs.OLD:
        return  # it looks at no model, and takes any name
    text = STOPPED.replace("PORT", str(story.lab.port)).replace(
        "level: warn", "level: error, gateway.customBindHost: 127.0.0.1"
    )
    text = text.replace("provider: anthropic, model: claude-sonnet-5", "provider: anthropic, model: claude-sonet-5")
    before = story.config()
    events = story.apply(story.setup(text + JOB + OPS.replace("Be brief", "Be kind")))
    assert told(events) == {"default/inference": "refused"}
    (reason,) = {event.reason for event in events if event.address}
    assert "Unknown model: anthropic/claude-sonet-5" in reason
    assert reason.endswith("(this gateway knows anthropic/claude-sonnet-5)")
    assert story.config() == before


def an_agent_goes_with_a_review_and_leaves_its_files(story: Story) -> None:
    workspace = Path(story.agents()["ops"]["workspace"])
    text = STOPPED.replace("PORT", str(story.lab.port)).replace(
        "level: warn", "level: error, gateway.customBindHost: 127.0.0.1"
    )
    text = story.setup(text + JOB)
    options = Options(allow=frozenset({"last-of-kind", "many-deletes"}))
    found = story.plan(text, options)
    rows = frozenset(h.digests[a.address] for h in found.homes for a in h.open)
    events = story.apply(text, options, Consent(yes=True, terminal=True, reviewed=True, approved=rows))
    assert set(told(events).values()) == {"applied"}, [str(e) for e in events if e.address and e.outcome != "applied"]
    assert "ops" not in story.agents()
    assert workspace.is_dir()
    assert list(story.stored().values()) == ["brief"]


CHAPTERS = (
    a_home_is_made_from_nothing_and_its_token_is_nowhere_else,
    the_config_of_a_stopped_home_is_written_by_its_command_line,
    what_the_command_line_refuses_comes_back_in_its_words_and_the_rest_is_written,
    a_job_of_a_stopped_home_is_made_through_a_quiet_gateway_that_is_gone_then,
    a_running_home_gets_an_agent_with_all_that_it_has,
    a_file_changes_under_its_hash_and_comments_are_kept_aside,
    a_setting_that_restarts_the_gateway_is_waited_for,
    a_model_that_openclaw_does_not_know_is_refused_in_its_words,
    an_agent_goes_with_a_review_and_leaves_its_files,
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", labs.VERSIONS)
def test_a_home_from_nothing_to_a_running_one(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = Path(os.path.realpath(tmp_path))
    lab = labs.Lab(user, version, labs.free_port())
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("OPENCLAW_STATE_DIR", "/somewhere/else")  # what the caller has set leads nowhere
    kit = Kit(OpenClawProvider(), lambda path: lab)  # type: ignore[arg-type, return-value]
    story = Story(kit, user, lab, kit.provider)  # type: ignore[arg-type]
    story.lab = lab
    try:
        for chapter in CHAPTERS:
            print(chapter.__name__)
            chapter(story)
    finally:
        lab.stop()
