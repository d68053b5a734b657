"""The commands that a held row names: each can be carried out."""

from __future__ import annotations

import pytest

from reconciler.action import Action, FieldChange, FieldRow, Row
from reconciler.cli.render.plan import next_commands
from reconciler.observe import ABSENT, Seen, Unknown
from reconciler_specs.address import Address
from reconciler_specs.shape import Shape

WHERE = "main/default/jobs/brief"
RESTORE = f"reconciler apply --restore {WHERE}"


def drifted(**fields: Seen) -> Action:
    changes = tuple(FieldChange(n, FieldRow.DRIFT, "ours", seen, None, Shape()) for n, seen in fields.items())
    return Action(Row.UPDATE, Address.parse(WHERE), "j1", changes)


@pytest.mark.parametrize("seen", [ABSENT, Unknown("cut off"), {"$hidden": "00"}, {"$native": {}}, [{"$hidden": "00"}]])
def test_what_no_setup_can_say_is_not_offered_for_capture(seen: Seen) -> None:
    assert next_commands(drifted(prompt=seen)) == [RESTORE]
    assert next_commands(drifted(prompt=seen, name="x")) == [RESTORE, f"reconciler capture {WHERE}#name"]
    assert next_commands(drifted(prompt="x", name="x")) == [RESTORE, f"reconciler capture {WHERE}"]
