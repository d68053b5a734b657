"""Channels, routes and webhooks of a profile: what Hermes's own files say of who reaches it."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping

from reconciler.observe import Store, Things, Unknown, Wanted
from reconciler.place import Place
from reconciler_shape import places, reach, webhooks
from reconciler_shape.channels import Dialect
from reconciler_shape.channels import Store as Around
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home

DIALECT = Dialect()
"""Hermes expands no `${NAME}` in a platform's block (`gateway/config.py`), and has no adapters to choose from."""
_PAIRING = (posixpath.join("platforms", "pairing"), "pairing")
_SUFFIX = "-approved.json"
Part = tuple[Things | Unknown, Store]


def read(place: Place, profile: home.Profile, env: Unknown | None, wanted: Wanted) -> Mapping[Kind, Part]:
    """The three kinds as wanted. `env` is why the `.env` cannot be read, None if it can."""
    config = profile.config
    found: dict[Kind, Part] = {}
    for kind in (Kind.CHANNEL, Kind.ROUTE):
        if config.unknown:
            found[kind] = config.unknown, config.store
    keys, everything = {kind: wanted.keys(profile.name, kind) for kind in reach.KINDS}, wanted.everything
    if Kind.ROUTE not in found:
        routes = reach.routes_of(profile.name, config.raw, profile.hider, keys[Kind.ROUTE], everything)
        found[Kind.ROUTE] = routes, config.store
    if Kind.CHANNEL not in found:
        found[Kind.CHANNEL] = _channels(place, profile, env, keys[Kind.CHANNEL], everything), config.store
    found[Kind.WEBHOOK] = _webhooks(place, profile, env, keys[Kind.WEBHOOK], everything)
    return found


def absent() -> dict[Kind, Part]:
    """As a profile has them that is not there yet."""
    return {kind: ({}, Store.MISSING) for kind in reach.KINDS}


def _channels(
    place: Place, profile: home.Profile, env: Unknown | None, wanted: list[str], everything: bool
) -> Things | Unknown:
    if env is not None:
        return env
    if not wanted and not everything:
        return {}
    legacy = posixpath.join(profile.folder, "gateway.json")
    if places.lstat(place, legacy) is not None:
        return Unknown(f"{legacy}: an older form of the channels lies beneath config.yaml; move it into config.yaml")
    paired = _paired(place, profile.folder)
    if isinstance(paired, Unknown):
        return paired
    store = Around(profile.config.raw, profile.env.values, paired)
    return reach.channels_of(profile.name, store, profile.hider, DIALECT, wanted, everything)


def _paired(place: Place, folder: str) -> dict[str, list[str]] | Unknown:
    """Who was let in by pairing, by platform, of both folders, as Hermes joins them."""
    found: dict[str, list[Mapping[str, Json]]] = {}
    for below in _PAIRING:
        for name in places.visible(place, posixpath.join(folder, below)):
            if not name.endswith(_SUFFIX):
                continue
            path = posixpath.join(folder, below, name)
            data = home.text(place, path, home.TEXT_LIMIT)
            if isinstance(data, Unknown):
                return data
            try:
                record = json.loads(data or b"{}")
            except (ValueError, RecursionError) as error:
                return Unknown(f"{path}: {error}")
            if not isinstance(record, dict):
                return Unknown(f"{path}: there is no map of ids in it")
            found.setdefault(name.removesuffix(_SUFFIX), []).append(record)
    return {platform: reach.paired(records) for platform, records in found.items()}


def _webhooks(place: Place, profile: home.Profile, env: Unknown | None, wanted: list[str], everything: bool) -> Part:
    path = posixpath.join(profile.folder, webhooks.FILE)
    data = home.text(place, path, home.TEXT_LIMIT)
    if isinstance(data, Unknown):
        return data, Store.IMPROPER
    try:
        records = webhooks.parse(data, path)
    except webhooks.NotReadable as error:
        return Unknown(str(error)), Store.IMPROPER
    state = Store.MISSING if data is None else Store.PROPER if data.strip() else Store.EMPTY
    if env is not None:
        return env, state
    values = profile.env.values
    return reach.webhooks_of(profile.name, records, values, profile.hider, wanted, everything), state
