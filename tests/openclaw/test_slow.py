"""A home behind a command prefix: written by OpenClaw's own command line there, and never by a connection of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from openclaw import lab as labs
from openclaw.fake_gateway import Fake, served
from openclaw.test_door import codes, made, setting
from openclaw.test_writing import Story, told
from reconciler.errors import DoorLost, ProviderError
from reconciler.place_exec import ExecPlace
from reconciler.provider import HomeRef, Step
from reconciler.testing.kit import Kit
from reconciler.workspace import Workspace
from reconciler_openclaw import door, gateway, rpc, slow
from reconciler_openclaw.provider import OpenClawProvider


def quietly(_: str) -> None:
    pass


@dataclass
class Box:
    """A home behind a prefix, with a running gateway; OpenClaw's program there is a script of the test's."""

    fake: Fake
    place: ExecPlace

    @property
    def program(self) -> Path:
        return self.fake.root.parent / "package" / "openclaw.mjs"

    @property
    def ref(self) -> HomeRef:
        return replace(self.fake.ref(), place=self.place)

    def stop(self) -> None:
        for lock in (self.fake.root / "tmp").rglob("*.lock"):
            lock.unlink()

    def says(self, answer: Any, code: int = 0) -> None:
        """What the program prints for a call, once it has proved whose gateway it is."""
        database = json.dumps({"sqlitePath": str(self.fake.root / "state" / "openclaw.sqlite")})
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self.program.write_text(
            f'echo "$@" >> {self.program.parent}/calls\n'
            f"[ \"$3\" = cron.status ] && {{ echo '{database}'; exit; }}\necho '{text}'; exit {code}\n"
        )

    def call(self) -> Any:
        line = slow.attach(self.ref, quietly)
        assert line is not None
        return line.call("cron.get", {"id": "x"})


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    monkeypatch.setenv("HOME", str(tmp_path))
    with served(tmp_path) as fake:
        place = ExecPlace(["env", "-i", "PATH=/usr/bin:/bin", f"HOME={tmp_path}", "sh", "-c", 'exec "$@"', "sh"])
        try:
            yield Box(fake, place)
        finally:
            place.close()
        assert fake.connections == 0


def test_an_answer_and_a_refusal_are_the_gateways_own(box: Box) -> None:
    box.says({"id": "x"})
    assert box.call() == {"id": "x"}
    assert '--params {"id": "x"}' in (box.program.parent / "calls").read_text()
    details = {"code": "CRON_JOB_NOT_FOUND"}
    error = {"type": "gateway_request_error", "code": "INVALID_REQUEST", "message": "No such job.", "details": details}
    box.says({"ok": False, "error": error}, 1)
    with pytest.raises(rpc.Refusal, match=r"^No such job\.$") as found:
        box.call()
    assert found.value.reason == "CRON_JOB_NOT_FOUND"


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        ({"ok": False, "error": {"type": "cli_error", "message": "no token"}}, rpc.NotSent),
        ({"ok": False, "error": {"type": "gateway_transport_error", "message": "closed"}}, DoorLost),
        ({"ok": False}, DoorLost),
        ("no json", DoorLost),
    ],
)
def test_what_did_not_come_to_an_answer(box: Box, answer: Any, raised: type[Exception]) -> None:
    box.says(answer, 1)
    with pytest.raises(raised):
        box.call()


def test_a_gateway_that_works_on_another_database_gets_no_call(box: Box) -> None:
    calls = box.program.parent / "calls"
    box.program.write_text(f'echo "$3" >> {calls}; echo \'{{"sqlitePath": "/somebody/else"}}\'')
    with pytest.raises(ProviderError, match="works on /somebody/else"):
        box.call()
    assert calls.read_text().split() == ["cron.status"]


def test_jobs_of_a_stopped_home_are_refused_before_anything(box: Box) -> None:
    box.stop()
    with pytest.raises(ProviderError, match="takes jobs only through a gateway: start it there"):
        door.check(box.ref, [made("brief")])
    door.check(box.ref, [setting(box.fake, "tools.profile", "full")])


def test_a_stopped_home_gets_its_config_by_the_command_line_there(box: Box) -> None:
    box.stop()
    row, got = setting(box.fake, "tools.profile", "full"), box.program.parent / "got"
    box.program.write_text(f'[ "$1 $2 $3" = "config patch --stdin" ] && cat > {got}')
    with door.opened(box.ref, None) as found:
        assert codes(found.perform(Step(box.ref, (row,), {row.address: "i"}))) == ["ok"]
        assert found.name == "openclaw slow door"
    assert json.loads(got.read_text()) == {"tools": {"profile": "full"}}


# -- the real program


class There(Story):
    """The story's home, reached by a prefix."""

    spaces: list[Workspace]

    def space(self, text: str) -> Workspace:
        self.spaces.append(super().space(text))
        return self.spaces[-1]

    def setup(self, profiles: str, first: str = "adopt", door: str = "") -> str:
        way = f"""[env, -i, "PATH=/usr/bin:/bin", "HOME={self.lab.user}", sh, -c, 'exec "$@"', sh]"""
        text = super().setup(profiles, first, door)
        text = text.replace("homes:\n", f"places:\n  box: {{exec: {way}}}\nhomes:\n", 1)
        return text.replace("    harness: openclaw\n", "    harness: openclaw\n    at: box\n")


FIRST = """
default:
  settings: {logging.level: warn}
  files: {SOUL.md: {text: "Be brief.\\n"}}
  jobs:
    brief: {schedule: {every: 2h}, prompt: Write the brief., deliver: local}
"""


@pytest.mark.openclaw
@pytest.mark.timeout(600)
def test_a_running_home_behind_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        pytest.fail("a connection of ours")

    monkeypatch.setattr(gateway, "attach", refused)
    lab = labs.make(tmp_path.resolve(), labs.NEW)
    kit = Kit(OpenClawProvider(), lambda path: lab)  # type: ignore[arg-type, return-value]
    story = There(kit, lab.user, lab, kit.provider)  # type: ignore[arg-type]
    story.lab, story.spaces = lab, []
    lab.start()
    try:
        text = story.setup(FIRST)
        assert any(note.startswith("slow door") for note in story.plan(text).homes[0].notes)
        story.converge(text)
        assert story.config()["logging"] == {"level": "warn"}
        text = story.setup(FIRST.replace("Write the", "Read the"))
        events = story.apply(text)
        assert told(events) == {"default/jobs/brief": "applied"}
        assert {event.extra.get("door") for event in events if event.what == "outcome"} == {"openclaw slow door"}
        (job,) = (job for job in lab.jobs().values() if job["name"] == "brief")
        assert job["payload"]["message"] == "Read the brief."
        assert story.rows(text) == {}
    finally:
        for space in story.spaces:
            space.close()
        lab.stop()
