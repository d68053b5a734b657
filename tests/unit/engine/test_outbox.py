"""Who is told what came of a run: once for each value, in order, and never at a run's cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler import outbox
from reconciler.cli.notify import tell_others
from reconciler.notices import Notice, of_plan, of_run
from reconciler.past import past
from reconciler.plan import Options
from reconciler.vault import Vault
from reconciler_specs.notify import NotifyTarget
from webhook import webhook
from world import HEAD, JOBS, World, home_text

OPS = NotifyTarget("ops", {"url": "https://hooks.example.org/x"})


class Target:
    """What a webhook's other end gets; `says` are the answers to come, 200 after that."""

    def __init__(self, *says: int | tuple[int, float]) -> None:
        self.says = list(says)
        self.got: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.waits: list[float] = []

    def post(self, _url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, float]:
        said = self.says.pop(0) if self.says else 200
        status, asked = said if isinstance(said, tuple) else (said, 0.0)
        if 200 <= status < 300:
            self.got.append(json.loads(body))
            self.headers.append(headers)
        return status, asked

    @property
    def told(self) -> list[str]:
        return [n["why"] for message in self.got for n in message["notices"]]


def notice(why: str = "w", topic: str = "drift", home: str = "main", **more: Any) -> Notice:
    fields = {"address": f"{home}/default/jobs/brief", "field": "prompt", "row": "update", "command": ""}
    return Notice(topic, home, why=why, **{**fields, "mark": why, **more})


def tell(root: Path, to: Target, *notices: Notice, target: NotifyTarget = OPS, ran: tuple[str, ...] = ()) -> list[str]:
    return outbox.tell(
        {target.name: target},
        "solo",
        notices,
        looked=["main"],
        ran=ran,
        root=root,
        vault=Vault(root),
        post=to.post,
        pause=to.waits.append,
    )


def test_each_value_is_told_once_and_again_when_it_came_back(tmp_path: Path) -> None:
    to = Target()
    for _ in range(3):
        assert tell(tmp_path, to, notice("a")) == []
    assert to.told == ["a"]
    tell(tmp_path, to, notice("b"))
    tell(tmp_path, to)
    tell(tmp_path, to, notice("b"))
    assert to.told == ["a", "b", "b"]


def test_what_was_applied_is_told_each_time(tmp_path: Path) -> None:
    to, target = Target(), NotifyTarget("ops", OPS.url, on=frozenset({"applied"}))
    for _ in range(2):
        tell(tmp_path, to, notice("applied", "applied", of_run=True), target=target)
    assert to.told == ["applied", "applied"]


def test_a_failure_of_a_run_is_over_after_a_run_without_it(tmp_path: Path) -> None:
    to, bad = Target(), notice("refused", "failed", of_run=True)
    tell(tmp_path, to, bad, ran=("main",))
    tell(tmp_path, to)  # a mere look says nothing of it
    tell(tmp_path, to, bad, ran=("main",))
    assert to.told == ["refused"]
    tell(tmp_path, to, ran=("main",))
    tell(tmp_path, to, bad, ran=("main",))
    assert to.told == ["refused", "refused"]


def test_topics_and_addresses_are_chosen(tmp_path: Path) -> None:
    to, target = Target(), NotifyTarget("ops", OPS.url, on=frozenset({"held"}), only=("main/*/jobs/*",))
    away = notice("away", "held", "shop")
    tell(tmp_path, to, notice("drift"), notice("held", "held"), away, target=target)
    assert to.told == ["held"]


def test_nothing_to_tell_makes_no_file(tmp_path: Path) -> None:
    tell(tmp_path, Target())
    assert list(tmp_path.iterdir()) == []


def test_nothing_new_changes_no_byte(tmp_path: Path) -> None:
    to = Target()
    tell(tmp_path, to, notice())
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (tmp_path / "notify").iterdir()}
    tell(tmp_path, to, notice())
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (tmp_path / "notify").iterdir()} == before


@pytest.mark.parametrize("busy", [500, 503, 429, 408, 0])
def test_a_busy_target_is_asked_again(tmp_path: Path, busy: int) -> None:
    to = Target(busy, busy)
    assert tell(tmp_path, to, notice()) == [] and to.told == ["w"] and len(to.waits) == 2


def test_the_wait_that_it_asks_for_is_kept_to(tmp_path: Path) -> None:
    to = Target((429, 7.0))
    tell(tmp_path, to, notice())
    assert to.waits == [7.0]
    to = Target((429, 3600.0))
    assert "429" in tell(tmp_path, to, notice("x"))[0] and to.waits == []


@pytest.mark.parametrize("status", [301, 400, 401, 404, 410])
def test_a_refusal_is_final_for_the_run_and_nothing_is_lost(tmp_path: Path, status: int) -> None:
    to = Target(status)
    [said] = tell(tmp_path, to, notice("a"))
    assert str(status) in said and "1 wait" in said and to.waits == []
    assert tell(tmp_path, to, notice("a"), notice("b", field="schedule")) == []
    assert to.told == ["a", "b"]


def test_too_many_that_wait_drop_the_oldest_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "KEPT", 3)
    to = Target(404)
    tell(tmp_path, to, *(notice(str(n), field=f"f{n}") for n in range(5)))
    tell(tmp_path, to, *(notice(str(n), field=f"f{n}") for n in range(5)))
    assert to.told == ["2", "3", "4"] and "2 older ones were dropped" in to.got[0]["text"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"told": 3}', b"[" * 100_000])
def test_a_damaged_file_costs_a_second_telling_and_no_more(tmp_path: Path, content: bytes) -> None:
    to = Target()
    tell(tmp_path, to, notice())
    [path] = (tmp_path / "notify").glob("*.json")
    path.write_bytes(content)
    assert tell(tmp_path, to, notice()) == [] and to.told == ["w", "w"]


def test_a_state_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "notify").write_text("a file is in the way")
    [said] = tell(tmp_path, Target(), notice())
    assert said.startswith("notify ops: ")


def test_a_url_and_a_credential_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = NotifyTarget("ops", {"env": "NOTIFY_URL"}, {"env": "NOTIFY_TOKEN"})
    to = Target()
    [said] = tell(tmp_path, to, notice(), target=target)
    assert "NOTIFY_URL" in said
    monkeypatch.setenv("NOTIFY_URL", "http://example.org/x")
    monkeypatch.setenv("NOTIFY_TOKEN", "hush-hush-hush")
    [said] = tell(tmp_path, to, notice(), target=target)
    assert "https" in said and "example" not in said
    monkeypatch.setenv("NOTIFY_URL", "https://hooks.example.org/y")
    assert tell(tmp_path, to, notice(), target=target) == []
    assert to.headers[0]["Authorization"] == "Bearer hush-hush-hush"
    assert all(b"hush" not in p.read_bytes() for p in (tmp_path / "notify").iterdir())


def test_a_real_webhook(tmp_path: Path) -> None:
    with webhook(503, 200, 302) as (where, got):
        target = NotifyTarget("ops", {"url": where})
        for why in ("a", "b"):
            said = outbox.tell({"ops": target}, "solo", [notice(why)], looked=["main"], ran=[], root=tmp_path,
                               vault=Vault(tmp_path), pause=lambda _: None)  # fmt: skip
            assert said == [] if why == "a" else "302" in said[0]
    assert len(got) == 3 and json.loads(got[1])["format"] == "reconciler.notify/1"


def test_nobody_there_is_said(tmp_path: Path) -> None:
    target = NotifyTarget("ops", {"url": "http://127.0.0.1:9/"})
    [said] = outbox.tell({"ops": target}, "solo", [notice()], looked=["main"], ran=[], root=tmp_path,
                         vault=Vault(tmp_path), pause=lambda _: None)  # fmt: skip
    assert "cannot be reached" in said


def test_a_target_that_hangs_costs_its_seconds_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(outbox, "SECONDS", 0.2)
    monkeypatch.setattr(outbox, "TRIES", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        target = NotifyTarget("ops", {"url": f"http://127.0.0.1:{silent.getsockname()[1]}/"})
        [said] = outbox.tell({"ops": target}, "solo", [notice()], looked=["main"], ran=[], root=tmp_path,
                             vault=Vault(tmp_path), pause=lambda _: None)  # fmt: skip
    assert "cannot be reached" in said


def test_what_a_life_is_told_as(tmp_path: Path) -> None:
    """Applied, then an edit behind our back: drift with its field; a home that cannot be read: failed."""
    world = World(tmp_path)
    world.home()
    world.setup(HEAD + home_text())
    events = world.apply()
    assert {(n.topic, n.address) for n in of_run(events)} >= {("applied", "main/default/jobs/brief")}
    assert of_plan(world.plan()) == []
    world.edit([{"set": "default/jobs/brief", "prompt": "Mine."}])
    [drift] = of_plan(world.plan(Options()))
    assert (drift.topic, drift.address, drift.field) == ("drift", "main/default/jobs/brief", "prompt")
    assert "Mine." not in json.dumps(drift.to_json())


@pytest.mark.parametrize("narrow", ["target", "undo"])
def test_what_a_narrow_plan_leaves_out_is_not_over(
    tmp_path: Path, narrow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = Target()
    monkeypatch.setattr(outbox, "_post", to.post)
    world = World(tmp_path)
    world.home()
    other = "          other: {schedule: {every: 1h}, prompt: PROMPT, deliver: local}\n"
    for prompt in ("One.", "Two."):
        world.setup(f"{HEAD}notify: {{ops: {{url: 'https://x.example.org/'}}}}\n" + home_text(JOBS + other))
        world.text = world.text.replace("PROMPT", prompt)
        world.apply()
    world.edit([{"set": "default/jobs/brief", "prompt": "Mine."}])
    run = past(world.space()).commands[0].run
    narrowed = Options(targets=("main/default/jobs/other",)) if narrow == "target" else Options(undo=run)
    for options in (Options(), narrowed, Options()):
        tell_others(world.space(), world.plan(options), [], whole=options.whole)
    assert len(to.told) == 1
