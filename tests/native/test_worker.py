"""A profile's worker: a field of the profile, in the one block of config.yaml that is a native home's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from native.lab import do, serving
from reconciler.action import Fact, Row
from reconciler.draft import draft, survey
from reconciler.testing.kit import Kit, World, outcomes
from reconciler.testing.kit import world as make_world
from reconciler_native.home import init
from reconciler_native.provider import NativeProvider
from reconciler_specs.address import Address
from reconciler_specs.load import load_text
from reconciler_specs.render import render_setup

WORKER = (
    "worker: {harness: codex, model: o, env: {API_KEY: {secret: CODEX_KEY}, PORT: '3000'}, permission: {default: deny}}"
)


class Nobody:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@pytest.fixture(params=["cold", "live"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    def make(path: Path) -> Any:
        init(path)
        (path / ".env").write_text("CODEX_KEY=a-key-that-is-none-0123\n")
        (path / "config.yaml").write_text("# mine\nworker:\n  harness: pi  # by hand\n  preset: quick\n")
        return Nobody(path)

    found = make_world(Kit(NativeProvider(), make, restart="when_needed"), tmp_path)
    found.apply(found.text())
    with serving(found.home.path) if request.param == "live" else nullcontext():
        yield found


def block(world: World, profile: str = "") -> Any:
    path = world.home.path / (f"profiles/{profile}" if profile else "") / "config.yaml"
    return yaml.safe_load(path.read_text())["worker"]


def test_it_is_declared_changed_and_what_nobody_declares_stays(here: World) -> None:
    text = here.text(rest=WORKER)
    row = here.rows(text)["default"]
    assert {Fact.RUNS_CODE} <= row.facts and row.tier == "confirm"
    assert set(outcomes(here.apply(text)).values()) == {"applied"}
    assert not here.rows(text)
    assert block(here) == {
        "harness": "codex",
        "preset": "quick",
        "model": "o",
        "env": {"API_KEY": "${CODEX_KEY}", "PORT": "3000"},
        "permission": {"default": "deny"},
    }
    assert (here.home.path / "config.yaml").read_text().startswith("# mine\n")
    looser = text.replace("default: deny", "default: allow")
    assert Fact.LOOSENS_SECURITY in here.rows(looser)["default"].facts
    here.converge(looser)
    tighter = here.rows(text)["default"]
    assert not tighter.facts and tighter.tier == "auto"
    here.converge(text)
    before = here.tree()
    assert here.apply(text) == [] and here.tree() == before


def test_a_new_profile_brings_its_worker_and_drift_is_seen(here: World) -> None:
    text = here.text(extra="      coder: {description: Codes., worker: claude-code}\n")
    here.converge(text)
    assert block(here, "coder") == {"harness": "claude-code"}
    do(here.home.path, "profiles.update", name="coder", worker={"harness": "pi"}) if not _live(here) else None
    rows = here.rows(text)
    assert _live(here) or rows["coder"].held_fields[0].field == "worker"
    assert _live(here) or outcomes(here.apply(here.text(extra="      coder: {description: Codes.}\n"))) == {
        "coder": "applied"
    }


def _live(world: World) -> bool:
    return (world.home.path / "orchestrator.sock").exists()


def test_a_secret_that_is_not_there_holds_the_row(here: World) -> None:
    row = here.rows(here.text(rest=WORKER.replace("CODEX_KEY", "NO_SUCH_KEY")))["default"]
    assert row.hold is not None and "NO_SUCH_KEY" in row.hold.why


def test_a_secret_in_the_clear_stays_where_it_is_and_is_never_shown(tmp_path: Path) -> None:
    canary = "sk-canary-0123456789abcdef0123"

    def make(path: Path) -> Any:
        init(path)
        (path / "config.yaml").write_text(f"worker: {{harness: pi, env: {{API_KEY: {canary}, A: b}}}}\n")
        return Nobody(path)

    world = make_world(Kit(NativeProvider(), make), tmp_path)
    text = world.text(rest="worker: {harness: pi, model: x}")
    plan = world.plan(text)
    assert canary not in repr(plan)
    world.converge(text)
    found = block(world)
    moved = (world.home.path / ".env").read_text() if (world.home.path / ".env").exists() else ""
    assert found["model"] == "x" and found["env"]["A"] == "b"
    assert found["env"]["API_KEY"] == canary or canary in moved  # left, or moved to where secrets stand
    assert all(
        canary not in p.read_text() for p in (tmp_path / "state").rglob("*") if p.is_file() and "keys" not in str(p)
    )


def test_adopt_says_it_and_plans_nothing(here: World) -> None:
    here.converge(here.text(rest=WORKER))
    path = str(here.home.path)
    made = draft(survey(path, {"native": NativeProvider()}), "main", path)
    assert not made.left
    block = made.block["profiles"]["default"]
    assert block["worker"]["env"] == {"API_KEY": {"secret": "CODEX_KEY"}, "PORT": "3000"}
    assert "settings" not in block
    text = render_setup("solo", {"main": made.block})
    load_text(text, "setup.yaml", here.root)
    assert not [row for row in here.rows(text).values() if row.writes or row.hold]


def test_settings_in_it_do_not_go_beside_it(here: World) -> None:
    both = here.text(rest=WORKER + "\nsettings: {worker.model: y}")
    row = here.rows(both)["default/settings/worker.model"]
    assert row.row is Row.REFUSED and "worker" in row.reason
    alone = here.text(rest="settings: {worker.model: y}")
    assert here.rows(alone)["default/settings/worker.model"].row is Row.UPDATE


def test_other_harnesses_refuse_it_by_name(tmp_path: Path) -> None:
    from reconciler.observe import Observation
    from reconciler_hermes.provider import HermesProvider
    from reconciler_openclaw.provider import OpenClawProvider

    setup = load_text(
        "version: 1\nname: a\nhomes:\n  m: {harness: hermes, path: /x, profiles: {default: {worker: pi}}}\n",
        "s",
        tmp_path,
    )
    resource = setup.desired("m")[Address.parse("m/default")]
    for provider in (HermesProvider(), OpenClawProvider()):
        assert "worker" in provider.canon(resource, Observation(), lambda _: None).refused
