"""What a plan prints: the commands of a held row can be carried out, and homes that differ are not shown as one."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from reconciler.action import Action, FieldChange, FieldRow, Row
from reconciler.cli.render.plan import next_commands, plan_text
from reconciler.cli.render.style import Style
from reconciler.observe import ABSENT, Seen, Unknown
from reconciler.place import LocalPlace
from reconciler.plan import HomePlan, Plan
from reconciler.provider import HomeRef
from reconciler_specs.address import Address
from reconciler_specs.shape import Shape

PATH = "default/jobs/brief"
WHERE = f"main/{PATH}"
RESTORE = f"reconciler apply --restore {WHERE}"


def drifted(**fields: Seen) -> Action:
    changes = tuple(FieldChange(n, FieldRow.DRIFT, "ours", seen, None, Shape()) for n, seen in fields.items())
    return Action(Row.UPDATE, Address.parse(WHERE), "j1", changes)


@pytest.mark.parametrize("seen", [ABSENT, Unknown("cut off"), {"$hidden": "00"}, {"$native": {}}, [{"$hidden": "00"}]])
def test_what_no_setup_can_say_is_not_offered_for_capture(seen: Seen) -> None:
    assert next_commands(drifted(prompt=seen)) == [RESTORE]
    assert next_commands(drifted(prompt=seen, name="x")) == [RESTORE, f"reconciler capture {WHERE}#name"]
    assert next_commands(drifted(prompt="x", name="x")) == [RESTORE, f"reconciler capture {WHERE}"]


@pytest.mark.parametrize("same", [True, False])
def test_two_values_that_are_cut_to_the_same_words_are_not_one(same: bool) -> None:
    """A person agrees to what is shown, and of homes that look alike one is."""
    long = "word " * 60
    homes = []
    for name in ("one", "two"):
        row = drifted(prompt=long + ("one" if same else name))
        row = replace(row, address=Address.parse(f"{name}/{PATH}"))
        homes.append(HomePlan(HomeRef(name, "native", LocalPlace(), f"/{name}"), "solo", actions=(row,)))
    heads = [line for line in plan_text(Plan("solo", tuple(homes)), Style(io.StringIO())) if "  native" in line]
    assert len(heads) == (1 if same else 2)
