"""The verbs on secrets: one entry of the profile's `.env`. A value goes in, and none ever comes out."""

from __future__ import annotations

from .context import Args, Context, Result, Verb, text, verb
from .errors import Refused


def _set(ctx: Context, args: Args) -> Result:
    name, value = text(args, "name", "secrets.set"), args.get("value")
    if not isinstance(value, str) or not value:
        raise Refused("secrets.set: value is required, a text")
    _still(ctx, name)
    ctx.profile.env.set(name, value)
    return {"ran": f"set secret {name} in profile {ctx.profile.name}", "name": name}


def _unset(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "secrets.unset")
    _still(ctx, name)
    if name not in ctx.profile.env.values():
        raise Refused(f"secrets.unset: profile {ctx.profile.name} has no secret {name}")
    ctx.profile.env.remove(name)
    return {"ran": f"took secret {name} out of profile {ctx.profile.name}", "name": name, "deleted": True}


def _still(ctx: Context, name: str) -> None:
    ctx.still(f"secret {name}", ctx.profile.env.values().get(name) or None)


VERBS: dict[str, Verb] = {
    "secrets.set": verb(_set, "name", "value"),
    "secrets.unset": verb(_unset, "name"),
}
