"""Channels, routes and webhooks as they are declared, in the home's own terms, and why one cannot be kept. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.observe import Observation, Unknown
from reconciler.provider import Canon
from reconciler.values import members
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import SET, Json
from reconciler_specs.table import named_in

from . import channels, dotted, platforms, routes, webhooks
from .channels import Dialect
from .reach import DEFAULT


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds such a thing: the names in its profile's `.env` (and which of them mean another), config.yaml, the
    home's profiles, and the order of the declared routes."""

    title: str
    dialect: Dialect
    env: Collection[str] = ()
    env_known: bool = False
    same: Mapping[str, str] | None = None
    config: Mapping[str, Any] | None = None
    profiles: Collection[str] = ()
    orders: Mapping[str, int] | None = None
    channels: Collection[str] = ()

    def missing(self, names: Iterable[str]) -> str:
        """Why a row that needs these secrets waits, "" if it need not."""
        gone = sorted(set(names) - set(self.env)) if self.env_known else []
        return f"the home's .env has no {', '.join(gone)}" if gone else ""


def around(title: str, dialect: Dialect, observation: Observation, profile: str) -> Around:
    here = observation.facts.get("profiles", {}).get(profile, {})
    others = observation.facts.get("declared", {}).get("reach", {})
    things = observation.things.get(("", Kind.PROFILE), {})
    seen = [] if isinstance(things, Unknown) else list(things)
    return Around(
        title,
        dialect,
        here.get("env", ()),
        bool(here.get("env_known", False)),
        here.get("same", {}),
        here.get("config", {}),
        {DEFAULT, *seen, *others.get("profiles", ())},
        others.get("orders", {}),
        others.get("channels", {}).get(profile, ()),
    )


def canon(resource: Resource, near: Around) -> Canon:
    match resource.address.kind:
        case Kind.CHANNEL:
            return _channel(resource, near)
        case Kind.ROUTE:
            return _route(resource, near)
    return _webhook(resource, near)


def _channel(resource: Resource, near: Around) -> Canon:
    name, _, account = resource.address.key.partition("/")
    if account:
        return Canon({}, refused={"": f"{near.title} has one account per channel: write {name}, not {name}/{account}"})
    platform = platforms.of(name)
    fields, refused, needed = dict(resource.fields), {}, set()
    for key in ("allow", "admins"):
        wrong = [why for one in members(fields.get(key) or []) if (why := channels.id_problem(one))]
        if wrong:
            refused[key] = wrong[0]
    if not platform.lists:
        refused |= {
            key: f"{near.title} asks for no user on {name}" for key in ("allow", "admins", "open") if fields.get(key)
        }
    if fields.get("owner_chat") is not None:
        chat = fields["owner_chat"]
        parts = list(chat.values()) if isinstance(chat, dict) else [chat]
        if not platform.home:
            refused["owner_chat"] = f"{name} has no chat of its own"
        elif any(channels.id_problem(part) for part in parts):
            refused["owner_chat"] = next(why for part in parts if (why := channels.id_problem(part)))
    if "adapter" in fields and not near.dialect.adapter:
        refused["adapter"] = f"{near.title} has one way to talk to a channel"
    for key, variable in (fields.get("secrets") or {}).items():
        usual = platform.credentials.get(key)
        needed.add(variable)
        if variable == usual or (not platform.known and variable == f"{platform.prefix}_TOKEN"):
            continue
        if not near.dialect.references:
            says = f"takes {key} of {name} from {usual}" if usual else f"knows no credential {key} of {name}"
            refused["secrets"] = f"{near.title} {says}, and expands no reference there"
    if fields.get("extra") is not None:
        fields["extra"], why = _extra(fields["extra"], near)
        needed |= named_in(resource.fields["extra"])
        if why:
            refused["extra"] = why
    if fields.get("enabled") is False and platform.forced:
        on = platform.enabling(dict.fromkeys(near.env, "x"))
        if on:
            refused["enabled"] = f"{' and '.join(on)} in .env turn {name} on whatever is set; take them out first"
    return Canon(fields, refused=refused, held=near.missing(needed))


def _extra(value: Mapping[str, Any], near: Around) -> tuple[Json, str]:
    found, names = dotted.referenced(value)
    for key in value:
        if key in (channels.ALLOW, *channels.ADMINS) or (near.dialect.adapter and key == near.dialect.adapter):
            word = "allow" if key == channels.ALLOW else "admins" if key in channels.ADMINS else "adapter"
            return found, f"{key}: say it as `{word}`"
        if near.dialect.references and isinstance(value[key], dict) and value[key].keys() == {"secret"}:
            return found, f"{key}: a channel's credential is said in `secrets`"
    if names and not near.dialect.references:
        return found, f"{near.title} expands no reference there ({', '.join(sorted(names))})"
    return found, ""


def _route(resource: Resource, near: Around) -> Canon:
    address, fields = resource.address, dict(resource.fields)
    if address.profile != DEFAULT:
        why = f"routes are the default profile's here: declare {address.key} there, with `profile: {address.profile}`"
        return Canon({}, refused={"": why})
    refused = {}
    match = fields.get("match") or {}
    strange = [word for word in match if word not in routes.MATCH]
    if strange:
        known = ", ".join(routes.MATCH)
        refused["match"] = f"{', '.join(strange)}: a route of {near.title} goes by {known}"
    to = fields.get("profile")
    if to is not None and to not in near.profiles:
        refused["profile"] = f"route {address.key} goes to profile {to}, which is neither declared nor in the home"
    orders = near.orders or {}
    if "order" in fields:
        own = fields["order"]
        fields["order"] = sorted(name for name, order in orders.items() if order < own)
    on = (near.config or {}).get("multiplex_profiles", (near.config or {}).get("gateway", {}))
    on = on.get("multiplex_profiles") if isinstance(on, dict) else on
    notes = () if on else ("routes count once the setting gateway.multiplex_profiles is true",)
    ahead = tuple(Address(address.home, address.profile, address.kind, name) for name in fields.get("order", ()))
    return Canon(fields, {"order": SET} if "order" in fields else {}, refused, notes=notes, needs=ahead)


def _webhook(resource: Resource, near: Around) -> Canon:
    name, fields = resource.address.key, dict(resource.fields)
    refused: dict[str, str] = {}
    if not webhooks.NAME.fullmatch(name):
        refused[""] = f"{name}: a webhook's name has small letters, digits, _ and - here"
    block: Any = near.config or {}
    for part in ("platforms", "webhook", "extra", "routes"):
        block = block.get(part) if isinstance(block, dict) else None
    if isinstance(block, dict) and name in block:
        refused[""] = f"config.yaml has a webhook {name} (platforms.webhook.extra.routes), which wins over this one"
    held = ""
    if isinstance(fields.get("secret"), dict):
        said = fields["secret"]["secret"]
        held = near.missing([said])
        fields["secret"] = {"secret": (near.same or {}).get(said, said)}
    target = fields.get("deliver")
    if target == "owner_chat" and not near.dialect.references:
        refused["deliver"] = f"a webhook of {near.title} has no owner_chat: write {{to: CHANNEL}}, its home chat"
    if isinstance(target, dict) and ":" in target["to"]:
        refused["deliver"] = f"{target['to']}: a channel's name has no colon"
    return Canon(fields, refused=refused, held=held)


def clashes(key: str, near: Around) -> str:
    """Why a setting cannot be declared beside what these kinds declare, "" if it can."""
    path: Sequence[str] = dotted.split(key)
    for name in near.channels:
        if channels.covers(path) and (name in path or path[0] in platforms.of(name).own):
            return f"the channel {name} is declared: say it there"
    return ""
