"""What a provider says of a row, a restart or lost comments, and what the engine makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.action import Action, Fact, Hold, Tier
from reconciler.observe import Observation
from reconciler.plan import Options
from reconciler.testing.memory import MemoryProvider
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json
from world import HEAD, World, home_text, outcomes

SETTING = "        settings: {x.y: 1}\n"
ADDRESS = "main/default/settings/x.y"


class Restarting(MemoryProvider):
    def facts(self, action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
        found = super().facts(action, desired, observation)
        return found | {Fact.RESTARTS} if action.address.kind is Kind.SETTING else found


class Losing(MemoryProvider):
    def review(
        self, actions: Sequence[Action], observation: Observation, resources: Mapping[Address, Resource]
    ) -> list[Action]:
        hold = Hold("the comments of its config would be lost", "reconciler apply --allow comment-loss")
        return [
            replace(a, guard="comment-loss", hold=hold) if a.writes and a.address.kind is Kind.SETTING else a
            for a in super().review(actions, observation, resources)
        ]


def world_of(tmp_path: Path, provider: Any, restart: str = "") -> World:
    world = World(tmp_path)
    world.memory = world.provider = provider
    world.home()
    world.setup(HEAD + home_text())
    world.apply()
    text = home_text(SETTING)
    world.setup(HEAD + (text.replace("first_contact", f"restart: {restart}\n    first_contact") if restart else text))
    return world


@pytest.mark.parametrize(
    ("restart", "tier", "held"),
    [("", Tier.CONFIRM, False), ("ask", Tier.CONFIRM, False), ("when_needed", Tier.AUTO, False), ("never", None, True)],
)
def test_a_restart_is_asked_for_as_the_home_says(tmp_path: Path, restart: str, tier: Tier | None, held: bool) -> None:
    world = world_of(tmp_path, Restarting(), restart)
    row = world.rows()[ADDRESS]
    assert (row.hold is not None) is held
    if tier is not None:
        assert row.tier is tier
        return
    assert row.guard == "restart" and row.hold is not None and "--allow restart" in row.hold.command
    world.apply()
    assert world.rows()[ADDRESS].hold is not None
    options = Options(allow=frozenset({"restart"}))
    assert world.rows(options)[ADDRESS].hold is None
    assert outcomes(world.apply(options=options))[ADDRESS] == "applied"


def test_a_hold_of_the_providers_review_is_lifted_by_its_guard_and_no_other(tmp_path: Path) -> None:
    world = world_of(tmp_path, Losing())
    assert world.rows()[ADDRESS].hold is not None
    assert world.rows(Options(allow=frozenset({"restart", "rebuild"})))[ADDRESS].hold is not None
    options = Options(allow=frozenset({"comment-loss"}))
    assert outcomes(world.apply(options=options))[ADDRESS] == "applied"
    assert world.rows() == {}
