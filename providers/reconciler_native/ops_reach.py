"""The verbs on channels and routes: paths of config.yaml, lists in `.env` and pairings, as the shape has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler_shape import channels as shape
from reconciler_shape import channelwrites
from reconciler_shape import routes as route_shape
from reconciler_shape.channels import Dialect, Store
from reconciler_shape.plain import HIDDEN

from .context import Args, Context, Result, Verb, closed, flag, maybe_text, reference, text, verb
from .errors import Refused
from .folder import Profile
from .pasted import is_pasted

_PLATFORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_MATCH = ("platform", "guild_id", "chat_id", "thread_id")
_ROUTE_KEYS = ("name", *_MATCH, "profile")
_FIELDS = ("enabled", "secrets", "allow", "admins", "open", "owner_chat", "adapter", "extra")
_ROUTES = ("gateway", "profile_routes")


DIALECT = Dialect(references=True, adapter="adapter", in_block=True)


def store(found: Profile, raw: dict[str, Any] | None = None) -> Store:
    """What the profile's channels are made of. Raises LoadFailed."""
    paired = {platform: list(found.pairing(f"{platform}-approved")) for platform in found.platforms("approved")}
    return Store(found.config.raw if raw is None else raw, found.env.values(), paired)


def refuse_pasted(key: str, value: Any) -> None:
    """Raises Refused for a credential in the clear, wherever in the value."""
    if isinstance(value, dict):
        for name, item in value.items():
            refuse_pasted(str(name), item)
    elif isinstance(value, list):
        for item in value:
            refuse_pasted(key, item)
    elif is_pasted(key, value):
        raise Refused(f"{key}: a secret is only named here: put it into .env and write ${{NAME}}")


def _channel(ctx: Context, args: Args) -> Result:
    platform = _platform(args, "channels.set")
    config, base = ctx.profile.config, ("platforms", platform)
    _still(ctx, platform)
    if "fields" in args:
        _fields(ctx, platform, closed(args["fields"], _FIELDS, "fields"))
    extra = args.get("extra") or {}
    credentials = args.get("credentials") or {}
    if not isinstance(extra, dict) or not isinstance(credentials, dict):
        raise Refused("channels.set: extra and credentials are mappings")
    refuse_pasted("extra", extra)
    named = {key: reference(value, f"credentials.{key}", ctx.profile) for key, value in credentials.items()}
    enabled = flag(args, "enabled")
    if enabled is not None:
        config.set((*base, "enabled"), enabled)
    elif config.get(base) is None and "fields" not in args:
        config.set((*base, "enabled"), True)
    for key, value in extra.items():
        if value is None:
            config.unset((*base, "extra", key))
        else:
            config.set((*base, "extra", key), value)
    for key, value in named.items():
        # A reference is a credential only at the block's top level or under `extra:`.
        config.set((*base, key) if key == "token" else (*base, "extra", key), value)
    return {
        "ran": f"set channel {platform} in profile {ctx.profile.name}",
        "platform": platform,
        "channel": config.get(base),
    }


def _still(ctx: Context, platform: str) -> None:
    """As it stands, or as it stood before pasted secrets were taken in."""
    before = ctx.folder.seen(ctx.profile.name, ())
    now = shape.standing(store(ctx.profile), platform)
    then = shape.standing(store(ctx.profile, before), platform) if isinstance(before, dict) else now
    ctx.still(f"channel {platform}", now, then)


def _fields(ctx: Context, platform: str, fields: Mapping[str, Any]) -> None:
    """The setup's own fields, each whole; null takes one away. All of them, or none."""
    for key in ("allow", "admins"):
        for one in _ids(fields.get(key), key):
            why = shape.id_problem(one)
            if why:
                raise Refused(f"{key}: {why}")
    for key, name in (fields.get("secrets") or {}).items():
        reference({"secret": name}, f"secrets.{key}", ctx.profile)
    refuse_pasted("extra", _plain(fields.get("extra")))
    _carry_out(ctx, platform, channelwrites.changes(store(ctx.profile), platform, fields, DIALECT))


def _plain(value: Any) -> Any:
    """Without the marks of what is hidden: they stand for what is there."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if not (isinstance(item, dict) and HIDDEN in item)}
    return value


def _ids(value: Any, key: str) -> list[str]:
    found = value.get("only") if isinstance(value, dict) else value
    if found is None:
        return []
    if not isinstance(found, list) or any(not isinstance(one, str) for one in found):
        raise Refused(f"{key}: a list of ids is expected, each a text")
    return found


def _carry_out(ctx: Context, platform: str, made: channelwrites.Changes) -> None:
    for path, value in made.sets:
        ctx.profile.config.set(path, value)
    for path in made.unsets:
        ctx.profile.config.unset(path)
    for name, said in made.env.items():
        if said is None:
            ctx.profile.env.remove(name)
        else:
            ctx.profile.env.set(name, said)
    approved = ctx.profile.pairing(f"{platform}-approved")
    for one in made.revoke:
        approved.remove(one)


def _platform(args: Args, op: str) -> str:
    platform = text(args, "platform", op)
    if not _PLATFORM.fullmatch(platform):
        raise Refused(f"{op}: {platform!r} is not the name of a platform")
    return platform


def _no_channel(ctx: Context, args: Args) -> Result:
    platform = _platform(args, "channels.unset")
    _still(ctx, platform)
    if flag(args, "everything"):
        if not shape.there(store(ctx.profile), platform):
            raise Refused(f"channels.unset: profile {ctx.profile.name} has no channel {platform}")
        _carry_out(ctx, platform, channelwrites.removal(store(ctx.profile), platform))
    elif not ctx.profile.config.unset(("platforms", platform)):
        raise Refused(f"channels.unset: profile {ctx.profile.name} has no channel {platform}")
    return {"ran": f"took channel {platform} out of profile {ctx.profile.name}", "platform": platform, "deleted": True}


def _routes(ctx: Context, args: Args) -> Result:
    listed = args.get("routes")
    if not isinstance(listed, list):
        raise Refused("routes.set: routes is the whole list, in order ([] for none)")
    routes = [_route(ctx, item, f"routes[{index}]") for index, item in enumerate(listed)]
    ctx.still("the routes", ctx.profile.config.get(_ROUTES), ctx.folder.seen(ctx.profile.name, _ROUTES))
    _list(ctx, _ROUTES, routes)
    return {"ran": f"set {len(routes)} routes in profile {ctx.profile.name}", "routes": routes}


def _list(ctx: Context, path: tuple[str, ...], routes: list[Any]) -> None:
    if routes:
        ctx.profile.config.set(path, routes)
    else:
        ctx.profile.config.unset(path)


def _route(ctx: Context, item: Any, what: str) -> dict[str, Any]:
    route = closed(item, ("name", "match", "profile"), what)
    match = closed(route.get("match"), _MATCH, f"{what}.match")
    if not match.get("platform"):
        raise Refused(f"{what}.match.platform is required")
    values = {"name": maybe_text(route, "name"), "profile": _known(ctx, route.get("profile"), what)}
    values |= {key: None if match.get(key) in (None, "") else str(match[key]) for key in _MATCH}
    return {key: values[key] for key in _ROUTE_KEYS if values[key] is not None}


def _known(ctx: Context, profile: Any, what: str) -> str:
    if profile not in ctx.folder.profiles:
        known = ", ".join(sorted(ctx.folder.profiles))
        raise Refused(f"{what}: there is no profile {profile}; this home holds: {known}")
    return str(profile)


def _standing_route(ctx: Context, name: str) -> list[Any]:
    try:
        found = route_shape.entries(ctx.profile.config.raw)
    except ValueError as error:
        raise Refused(str(error)) from error
    twins = route_shape.named(found, name)
    if len(twins) > 1:
        raise Refused(f"{len(twins)} routes have the name {name}")
    ctx.still(f"route {name}", twins[0] if twins else None)
    return found


def _put_route(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "routes.put")
    found = _standing_route(ctx, name)
    fields: dict[str, Any] = {}
    if args.get("match") is not None:
        match = closed(args["match"], tuple(route_shape.MATCH), "match")
        if not match.get("channel"):
            raise Refused("match.channel is required")
        fields["match"] = {key: str(value) for key, value in match.items()}
    elif not route_shape.named(found, name):
        raise Refused("match is required for a new route")
    if args.get("profile") is not None:
        fields["profile"] = _known(ctx, args["profile"], name)
    if args.get("order") is not None:
        fields["order"] = {"after": [], "before": [], **closed(args["order"], ("after", "before"), "order")}
    made = route_shape.put(found, name, fields)
    _list(ctx, route_shape.place(ctx.profile.config.raw), made)
    return {"ran": f"set route {name} in profile {ctx.profile.name}", "name": name, "routes": made}


def _no_route(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "routes.delete")
    found = _standing_route(ctx, name)
    if not route_shape.named(found, name):
        raise Refused(f"routes.delete: profile {ctx.profile.name} has no route {name}")
    _list(ctx, route_shape.place(ctx.profile.config.raw), route_shape.without(found, name))
    return {"ran": f"took route {name} out of profile {ctx.profile.name}", "name": name, "deleted": True}


VERBS: dict[str, Verb] = {
    "channels.set": verb(_channel, "platform", "enabled", "extra", "credentials", "fields"),
    "channels.unset": verb(_no_channel, "platform", "everything"),
    "routes.set": verb(_routes, "routes"),
    "routes.put": verb(_put_route, "name", "match", "profile", "order"),
    "routes.delete": verb(_no_route, "name"),
}
