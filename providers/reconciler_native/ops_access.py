"""The verbs on access and webhooks, in Hermes's own stores: pairings, allow lists, admins, subscriptions."""

from __future__ import annotations

import re
from datetime import UTC
from typing import Any

from . import target
from .context import Args, Context, Result, Verb, closed, flag, maybe_text, reference, text, texts, verb
from .errors import Refused

CODE_TTL = 3600
"""Seconds that a pairing code is good for, as Hermes has it."""
ADMINS = ("allow_admin_from", "group_allow_admin_from")
_PLATFORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_USER = re.compile(r"[^\s,=#\"']+")
_WEBHOOK = re.compile(r"[a-z0-9][a-z0-9_-]*")


def variable(platform: str) -> str:
    """The name in `.env` of a platform's allow list."""
    return f"{'QQ' if platform == 'qqbot' else platform.upper().replace('-', '_')}_ALLOWED_USERS"


def allowlist(ctx: Context, platform: str) -> list[str]:
    """Who may talk there: the list in `.env` and the pairings that were approved, sorted."""
    found = {*_listed(ctx, platform), *ctx.profile.pairing(f"{platform}-approved")}
    return sorted(found)


def _listed(ctx: Context, platform: str) -> list[str]:
    raw = ctx.profile.env.values().get(variable(platform), "")
    return [user.strip() for user in raw.split(",") if user.strip()]


def admins(ctx: Context, platform: str) -> list[str]:
    """Who may answer a permission prompt there."""
    found = ctx.profile.config.get(("platforms", platform, ADMINS[0]))
    return [str(user) for user in found] if isinstance(found, list) else []


def _who(args: Args, op: str) -> tuple[str, str]:
    platform, user = text(args, "platform", op), text(args, "user_id", op)
    if not _PLATFORM.fullmatch(platform):
        raise Refused(f"{op}: {platform!r} is not the name of a platform")
    if not _USER.fullmatch(user):
        raise Refused(f"{op}: {user!r} is not the id of a user")
    return platform, user


def _grant(ctx: Context, platform: str, user: str, name: str) -> None:
    """As Hermes approves: the pairing store, and the list in `.env` where the operator keeps one."""
    approved = ctx.profile.pairing(f"{platform}-approved")
    if approved.get(user) is None:
        approved.put(user, {"user_name": name, "approved_at": ctx.now.timestamp()})
    listed = _listed(ctx, platform)
    if listed and user not in listed and "*" not in listed:
        ctx.profile.env.set(variable(platform), ",".join([*listed, user]))


def _allow(ctx: Context, args: Args) -> Result:
    platform, user = _who(args, "access.allow")
    _grant(ctx, platform, user, "")
    return _said(ctx, platform, f"allowed {user} on {platform}")


def _revoke(ctx: Context, args: Args) -> Result:
    platform, user = _who(args, "access.revoke")
    approved = ctx.profile.pairing(f"{platform}-approved")
    listed = _listed(ctx, platform)
    if approved.get(user) is None and user not in listed:
        raise Refused(f"access_revoke: {user} is not allowed on {platform}")
    if approved.get(user) is not None:
        approved.remove(user)
    if user in listed:
        left = [other for other in listed if other != user]
        if left:
            ctx.profile.env.set(variable(platform), ",".join(left))
        else:
            ctx.profile.env.remove(variable(platform))
    return _said(ctx, platform, f"revoked {user} on {platform}")


def _said(ctx: Context, platform: str, what: str) -> Result:
    return {
        "ran": f"{what} in profile {ctx.profile.name}",
        "platform": platform,
        "allowlist": allowlist(ctx, platform),
        "admins": admins(ctx, platform),
    }


def _admin(ctx: Context, args: Args, op: str) -> Result:
    platform, user = _who(args, op)
    config, base = ctx.profile.config, ("platforms", platform)
    now = admins(ctx, platform)
    if op == "access.admin_add":
        if user not in now:
            config.set((*base, ADMINS[0]), [*now, user])
        return _said(ctx, platform, f"made {user} an admin on {platform}")
    found = False
    for key in ADMINS:
        users = config.get((*base, key))
        if isinstance(users, list) and any(str(u) == user for u in users):
            found = True
            left = [u for u in users if str(u) != user]
            # An empty list is kept: without the key everybody on the allow list would be one.
            config.set((*base, key), left)
    if not found:
        raise Refused(f"admin_remove: {user} is no admin on {platform}")
    return _said(ctx, platform, f"{user} is no admin on {platform} any more")


def _admin_add(ctx: Context, args: Args) -> Result:
    return _admin(ctx, args, "access.admin_add")


def _admin_remove(ctx: Context, args: Args) -> Result:
    return _admin(ctx, args, "access.admin_remove")


def _pair(ctx: Context, args: Args) -> Result:
    code = text(args, "code", "access.pair_approve").upper()
    now = ctx.now.timestamp()
    limits = ctx.profile.pairing("_rate_limits")
    for platform in ctx.profile.platforms("pending"):
        pending = ctx.profile.pairing(f"{platform}-pending")
        locked = limits.get(f"_lockout:{platform}")
        for key, entry in pending.items():
            if not _matches(entry, code):
                continue
            if isinstance(locked, int | float) and now < locked:
                raise Refused(f"pairing on {platform} is locked after too many wrong codes; try again later")
            issued = entry.get("created_at")
            if not isinstance(issued, int | float) or now - issued > CODE_TTL:
                raise Refused(f"pairing {code} expired (ttl {CODE_TTL // 60} min)")
            user = str(entry.get("user_id") or "")
            _grant(ctx, platform, user, str(entry.get("user_name") or ""))
            pending.remove(key)
            return {
                "ran": f"approved pairing {code} in profile {ctx.profile.name} ({platform} {user})",
                "code": code,
                "allowlist": allowlist(ctx, platform),
            }
    raise Refused(f"no pending pairing {code}")


def _matches(entry: Any, code: str) -> bool:
    """Only a salted digest of the code is kept."""
    if not isinstance(entry, dict) or not isinstance(entry.get("salt"), str) or not isinstance(entry.get("hash"), str):
        return False
    try:
        salt = bytes.fromhex(entry["salt"])
    except ValueError:
        return False
    import hashlib  # slow to load, and few verbs need it
    import hmac

    return hmac.compare_digest(hashlib.sha256(salt + code.encode()).hexdigest(), entry["hash"])


def _webhook(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "webhooks.set")
    if not _WEBHOOK.fullmatch(name):
        raise Refused(f"webhooks.set: {name!r} is not a name (small letters, digits, '_' and '-')")
    old = ctx.profile.webhooks.get(name)
    ctx.still(f"webhook {name}", old)
    entry: dict[str, Any] = (
        dict(old)
        if isinstance(old, dict)
        else {
            "description": "",
            "events": [],
            "secret": "",
            "prompt": "",
            "skills": [],
            "deliver": "log",
            "created_at": ctx.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )
    if "secret" in args:
        entry["secret"] = reference(args["secret"], "secret", ctx.profile)
    if not entry.get("secret"):
        raise Refused("webhooks.set: secret is required, the name in .env of the key that calls are signed with")
    for key in ("events", "skills"):
        if key in args:
            entry[key] = texts(args, key)
    for key in ("description", "prompt"):
        if key in args:
            entry[key] = maybe_text(args, key) or ""
    if "deliver" in args:
        word = args["deliver"]
        entry.pop("deliver_extra", None)
        entry["deliver"] = word if word == "log" else target.accept(word, "deliver") or "log"
    if args.get("deliver_extra"):
        entry["deliver_extra"] = dict(closed(args["deliver_extra"], ("chat_id", "thread_id"), "deliver_extra"))
    only = flag(args, "deliver_only") if "deliver_only" in args else entry.get("deliver_only", False)
    if only and entry["deliver"] == "log":
        raise Refused("webhooks.set: deliver_only needs a deliver that reaches somebody, not `log`")
    entry.pop("deliver_only", None)
    if only:
        entry["deliver_only"] = True
    ctx.profile.webhooks.put(name, entry)
    return {"ran": f"set webhook {name} in profile {ctx.profile.name}", "name": name, "webhook": entry}


def _no_webhook(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "webhooks.delete")
    old = ctx.profile.webhooks.get(name)
    if old is None:
        raise Refused(f"webhooks.delete: no webhook {name}", stale=ctx.expect is not None)
    ctx.still(f"webhook {name}", old)
    ctx.profile.webhooks.remove(name)
    return {"ran": f"removed webhook {name} from profile {ctx.profile.name}", "name": name, "deleted": True}


VERBS: dict[str, Verb] = {
    "access.pair_approve": verb(_pair, "code"),
    "access.allow": verb(_allow, "platform", "user_id"),
    "access.revoke": verb(_revoke, "platform", "user_id"),
    "access.admin_add": verb(_admin_add, "platform", "user_id"),
    "access.admin_remove": verb(_admin_remove, "platform", "user_id"),
    "webhooks.set": verb(
        _webhook,
        "name",
        "secret",
        "events",
        "skills",
        "description",
        "prompt",
        "deliver",
        "deliver_extra",
        "deliver_only",
    ),
    "webhooks.delete": verb(_no_webhook, "name"),
}
