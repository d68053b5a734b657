"""The gate: how much consent a row needs, ruled from facts (laws, “Gate and consent”). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from .action import Action, Fact, FieldRow, Row, Tier
from .fields import FOUND

# What no policy lowers.
_REFUSED = (Fact.SECRET_IN_CLEAR,)


def verbs(action: Action) -> list[frozenset[str]]:
    """What a row does, as `policy.unattended` and `policy.raise` name it (`restore jobs`): one set of equivalent
    names per part of it. A policy covers the row if it has a name of each part."""
    kind = action.address.kind.value
    restart = [frozenset({"restart home"})] if Fact.RESTARTS in action.facts else []
    if action.row is not Row.UPDATE:
        word = "recreate" if action.row is Row.MISSING else str(action.row)
        return [frozenset({f"{word} {kind}"}), *restart]
    parts = {c.row for c in action.changes if c.writes}
    return [
        frozenset({f"{row} {kind}"} if row is FieldRow.RESTORE else {f"{row} {kind}", f"update {kind}"})
        for row in sorted(parts)
    ] + restart


def rule(action: Action, raised: Mapping[str, str]) -> tuple[Tier, str]:
    """(tier, the rule that gave it, and the policy that raised it). `raised` is `policy.raise`: verb and kind →
    confirm | refuse; it only raises."""
    tier, why = _floor(action)
    for name in sorted(n for part in verbs(action) for n in part if n in raised):
        wish = Tier(raised[name])
        if action.writes and _RANK[wish] > _RANK[tier]:
            tier, why = wish, f"{why}; policy.raise: {name}" if why else f"policy.raise: {name}"
    return tier, why


_RANK = {Tier.AUTO: 0, Tier.CONFIRM: 1, Tier.REFUSE: 2}


def _floor(action: Action) -> tuple[Tier, str]:
    if not action.writes:
        contact = action.row is Row.ADOPT and action.hold is None
        return (Tier.CONFIRM, "first contact") if contact else (Tier.AUTO, "")
    for fact in _REFUSED:
        if fact in action.facts:
            return Tier.REFUSE, str(fact)
    if action.row is Row.DELETE:
        if Fact.PERMANENT in action.facts:
            return Tier.REFUSE, str(Fact.PERMANENT)
        return Tier.CONFIRM, "deletes"
    if action.row is Row.PROVISION:
        return Tier.CONFIRM, "first contact"
    if action.row is Row.MISSING:
        return Tier.CONFIRM, "recreates what is gone from the home"
    if action.row is Row.RESTART:
        return Tier.CONFIRM, "restarts"
    if action.row is Row.FOLLOW:
        return Tier.CONFIRM, "changes what this setup does not own"
    for fact in Fact:
        if fact in action.facts and fact is not Fact.PERMANENT:
            return Tier.CONFIRM, str(fact)
    for change in action.changes:
        if change.row is FieldRow.RESTORE:
            return Tier.CONFIRM, f"overwrites the home's {change.field}"
        if change.row is FieldRow.CLAIM and change.note == FOUND:
            return Tier.CONFIRM, f"overwrites a found value ({change.field})"
        if change.writes and change.removes_found:
            return Tier.CONFIRM, f"removes members that were found, not added by us ({change.field})"
    return Tier.AUTO, ""
