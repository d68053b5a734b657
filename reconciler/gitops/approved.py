"""What somebody has agreed to since a revision was carried out."""

from __future__ import annotations

from ..consent import Consent
from ..plan import Plan
from ..workspace import Workspace


def approved_rows(space: Workspace, plan: Plan, consent: Consent) -> tuple[str, ...]:
    """The addresses of the rows that somebody has approved by name, and that may be carried out by that."""
    return tuple(
        str(action.address)
        for home in plan.homes
        for action in home.open
        if (digest := home.digests[action.address]) in consent.approved
        and consent.refusal(action, digest, space.unattended(home.id)) is None
    )
