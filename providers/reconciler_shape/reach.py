"""The kinds by which people and events reach an agent (channels, routes, webhooks), on the plan's side: what is seen of
them, and how they are said in a setup. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Row
from reconciler.observe import Observed, Things, Unknown
from reconciler.values import members
from reconciler_specs.address import Kind
from reconciler_specs.resource import Resource
from reconciler_specs.secrets import secret_key
from reconciler_specs.shape import Json

from . import channels, dotted, routes, webhooks
from .channels import Dialect, Store
from .hiding import HIDDEN, Hider, is_hidden
from .plain import digest, holds_native

KINDS = (Kind.CHANNEL, Kind.ROUTE, Kind.WEBHOOK)
DEFAULT = "default"
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def channels_of(
    profile: str, store: Store, hider: Hider, dialect: Dialect, wanted: Collection[str], everything: bool
) -> Things:
    """The wanted channels that are there, or all of them."""
    things = {}
    for name in channels.names(store) if everything else sorted(wanted):
        found = channels.observed(store, name, dialect)
        if found is None:
            continue
        # Names of secrets are none; the rest may hold one.
        fields = {key: value if key == "secrets" else hider.value(value, key) for key, value in found.fields.items()}
        if found.literals:
            literals = {key: {HIDDEN: digest(value, hider.key)} for key, value in found.literals.items()}
            fields["secrets"] = {**literals, **fields.get("secrets", {})}
        things[name] = Observed(
            Kind.CHANNEL,
            profile,
            name,
            fields,
            name=name,
            defaults=frozenset() if fields.get("open") else frozenset({"open"}),
            fingerprint=digest(channels.standing(store, name), hider.key),
            about={"enabling": list(found.enabling)} if found.enabling else {},
        )
    return things


def routes_of(
    profile: str, raw: Mapping[str, Any], hider: Hider, wanted: Collection[str], everything: bool
) -> Things | Unknown:
    """The default profile's routes by name; no other profile has any."""
    if profile != DEFAULT:
        return {}
    try:
        found = routes.entries(raw)
    except ValueError as error:
        return Unknown(f"config.yaml: {error}")
    things: dict[str, Observed] = {}
    for name in routes.names(found):
        if not everything and name not in wanted:
            continue
        twins = routes.named(found, name)
        fields: dict[str, Json | Unknown]
        if len(twins) > 1:
            fields = dict.fromkeys(("match", "profile"), Unknown(f"{len(twins)} routes have the name {name}"))
        else:
            fields = hider.value(routes.observed(found, name, None if everything else wanted))
        things[name] = Observed(Kind.ROUTE, profile, name, fields, name=name, fingerprint=digest(twins[0], hider.key))
    return things


def webhooks_of(
    profile: str,
    records: Mapping[str, Any],
    env: Mapping[str, str],
    hider: Hider,
    wanted: Collection[str],
    everything: bool,
) -> Things:
    """The wanted webhooks that are there, or all of them. The values of `env` go nowhere but into a comparison."""
    things = {}
    for name, record in records.items():
        if not everything and name not in wanted:
            continue
        fields, literal = webhooks.observed(record, name, env)
        secret = fields.pop("secret", {HIDDEN: digest(literal, hider.key)} if literal else None)
        fields = hider.value(fields)
        if secret is not None:
            fields["secret"] = secret
        things[name] = Observed(
            Kind.WEBHOOK,
            profile,
            name,
            fields,
            name=name,
            defaults=webhooks.defaults(fields, name),
            fingerprint=digest(record, hider.key),
        )
    return things


def same_values(env: Mapping[str, str]) -> dict[str, str]:
    """Names whose value another name has too → the one that stands for all of them."""
    found = {name: webhooks.named(value, env) for name, value in env.items() if value}
    return {name: first for name, first in found.items() if name != first}


def paired(records: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids that pairing approved, of one platform's files."""
    return sorted({str(one) for record in records for one in record})


# -- what is declared


def declared(resources: Iterable[Resource]) -> dict[str, Json]:
    """What canon, which sees one resource, has to know of the others."""
    found: dict[str, Any] = {"profiles": [DEFAULT], "orders": {}, "channels": {}}
    for resource in resources:
        address = resource.address
        if address.kind is Kind.PROFILE:
            found["profiles"].append(address.profile)
        elif address.kind is Kind.ROUTE and "order" in resource.fields:
            found["orders"][address.key] = resource.fields["order"]
        elif address.kind is Kind.CHANNEL:
            found["channels"].setdefault(address.profile, []).append(address.key)
    return found


def express(thing: Observed, dialect: Dialect) -> dict[str, Json]:
    """A thing as a setup's fields: defaults left out, nothing hidden, nothing that its kind has no word for."""
    said: dict[str, Json] = {
        key: value
        for key, value in thing.fields.items()
        if key not in thing.defaults and not isinstance(value, Unknown) and not holds_native(value)
    }
    if thing.kind is Kind.ROUTE:
        if "match" not in said or "channel" not in said["match"]:
            return {}
        return {**said, "order": len(said["order"]) + 1}
    if thing.kind is Kind.WEBHOOK:
        good = "secret" in said and not is_hidden(said["secret"]) and ("prompt" in said or said.get("deliver_only"))
        if not good or "deliver" not in thing.fields or holds_native(thing.fields["deliver"]):
            return {}
        said["deliver"] = thing.fields["deliver"]
        return {key: value for key, value in said.items() if not is_hidden(value)}
    if "enabled" not in said:
        return {}
    if "open" in said:
        said["open"] = "anyone"
    for key in ("secrets", "extra"):
        if key in said:
            said[key] = _shown(said[key], dialect, key == "secrets")
            if not said[key]:
                del said[key]
    return {key: value for key, value in said.items() if not is_hidden(value)}


def _shown(value: Mapping[str, Any], dialect: Dialect, secrets: bool) -> dict[str, Any]:
    """Without what is hidden, or what this harness would not take back."""
    shown = {}
    for key, item in value.items():
        if isinstance(item, dict) and HIDDEN not in item:
            item = _shown(item, dialect, False)
            if not item:
                continue
        if is_hidden(item) or item is None:
            continue
        reference = isinstance(item, str) and bool(_REFERENCE.fullmatch(item)) and secret_key(key)
        if reference and not dialect.references:
            continue
        shown[key] = item if secrets else dotted.named(item, key)
    return shown


def order(action: Action) -> dict[str, list[str]] | None:
    """What a route's row writes of its place: the names to come ahead of it, and those that no longer do."""
    for change in action.changes:
        if change.field == "order" and (change.writes or action.row is not Row.UPDATE) and change.write is not CLEAR:
            now = members(change.observed) if isinstance(change.observed, list) else []
            after = [str(one) for one in members(change.write)]
            return {"after": after, "before": [str(one) for one in now if one not in after]}
    return None


def elsewhere(path: Sequence[str]) -> bool:
    """Whether a leaf of config.yaml is shown by one of these kinds, and so is no setting to be listed."""
    return channels.covers(path) or tuple(path) in (("profile_routes",), ("gateway", "profile_routes"))
