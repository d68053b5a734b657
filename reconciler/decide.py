"""Decide: what the gate said of a row, as the record that `decisions/` keeps of it (S1-06). Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler_state.decisions import Decision, Said

from .action import Action, Tier
from .consent import Consent, Refusal
from .provenance import Provenance


def decided(
    action: Action, digest: str, refusal: Refusal | None, consent: Consent, who: Provenance, now: datetime
) -> Decision | None:
    """The decision on one open row; None for what is only recorded and needs nobody: that is in the journal."""
    if refusal is None:
        if not action.writes and action.tier is Tier.AUTO:
            return None
        said, why = Said.PERMITTED, consent.basis(action, digest)
    elif refusal.expired:
        said, why = Said.EXPIRED, refusal.why
    else:
        said, why = (Said.WAITED if refusal.waits else Said.REFUSED), refusal.why
    tier, rule = str(action.tier), action.rule
    return decision(said, str(action.address), digest, why, who, now, row=str(action.row), tier=tier, rule=rule)


def decision(
    said: Said,
    address: str,
    digest: str,
    why: str,
    who: Provenance,
    now: datetime,
    *,
    row: str = "",
    tier: str = "",
    rule: str = "",
) -> Decision:
    at = now.astimezone(UTC).isoformat(timespec="seconds")
    return Decision(said, at, address, row, digest, tier, rule, why, who.actor, who.host, who.run)
