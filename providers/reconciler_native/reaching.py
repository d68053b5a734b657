"""Channels, routes and webhooks of a profile, out of its stores, as the provider sees them."""

from __future__ import annotations

from reconciler.observe import Things, Unknown
from reconciler_shape import reach
from reconciler_shape.hiding import Hider

from .folder import Profile
from .ops_reach import DIALECT, store


def channels(found: Profile, hider: Hider, wanted: list[str], everything: bool) -> Things:
    """Raises LoadFailed."""
    return reach.channels_of(found.name, store(found), hider, DIALECT, wanted, everything)


def routes(found: Profile, hider: Hider, wanted: list[str], everything: bool) -> Things | Unknown:
    """Raises LoadFailed."""
    return reach.routes_of(found.name, found.config.raw, hider, wanted, everything)


def webhooks(found: Profile, hider: Hider, wanted: list[str], everything: bool) -> Things:
    """Raises LoadFailed."""
    records = {name: record for name, record in found.webhooks.items() if isinstance(record, dict)}
    return reach.webhooks_of(found.name, records, found.env.values(), hider, wanted, everything)
