"""`state.get`: the whole home as the orchestrator's one value (ontology `Orchestration`), secrets as references."""

from __future__ import annotations

from typing import Any

from . import ops_access, target
from .context import Args, Context, Result, Verb, verb
from .errors import LoadFailed
from .folder import Profile

_PERSONA = ("AGENTS.md", "SOUL.md")
_OWN = ("worker", "platforms", "gateway")
_EXPIRY = {"idle_minutes": 1440, "daily_reset_hour": None, "scope": "per_chat"}


def _get(ctx: Context, args: Args) -> Result:
    profiles = {name: _profile(ctx, profile) for name, profile in sorted(ctx.folder.profiles.items())}
    return {"ran": f"read {len(profiles)} profiles", "state": {"root": str(ctx.folder.root), "profiles": profiles}}


def _profile(ctx: Context, profile: Profile) -> dict[str, Any]:
    raw = profile.config.raw
    platforms = raw.get("platforms")
    gateway = raw.get("gateway")
    routes = gateway.get("profile_routes") if isinstance(gateway, dict) else None
    return {
        "name": profile.name,
        "dir": str(profile.folder),
        "worker": profile.worker,
        "persona": _persona(ctx, profile),
        "channels": {name: _channel(name, block) for name, block in _map(platforms) if isinstance(block, dict)},
        "routes": [_route(item) for item in routes if isinstance(item, dict)] if isinstance(routes, list) else [],
        "expiry": dict(_EXPIRY),
        "home": None,
        "jobs": {str(job["id"]): job for job in profile.jobs.shown(profile.zone)},
        "subscriptions": {name: _subscription(name, entry) for name, entry in profile.webhooks.items()},
        "access": _access(ctx, profile),
        "bindings": {},
        "fires": [],
        "obligations": [],
        "residue": {"config": {key: value for key, value in raw.items() if key not in _OWN}, "files": []},
    }


def _map(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _persona(ctx: Context, profile: Profile) -> dict[str, Any] | None:
    import hashlib  # slow to load, and few verbs need it

    for name in _PERSONA:
        try:
            data = ctx.home.disk.read(profile.folder / name, 1 << 20)
        except LoadFailed:
            continue  # a link (`SOUL.md` to `AGENTS.md`), or no text: the other one is the persona
        if data is not None:
            return {
                "path": name,
                "text": data.decode("utf-8", errors="replace"),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
    return None


def _channel(name: str, block: dict[str, Any]) -> dict[str, Any]:
    extra = block.get("extra") if isinstance(block.get("extra"), dict) else {}
    placed = {**{k: v for k, v in block.items() if k not in ("enabled", "extra")}, **(extra or {})}
    credentials = {key: {"dotenv": value[2:-1]} for key, value in placed.items() if _is_reference(value)}
    rest = {key: value for key, value in placed.items() if key not in credentials}
    return {"platform": name, "enabled": block.get("enabled", False), "credentials": credentials, "extra": rest}


def _is_reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("${") and value.endswith("}")


def _route(item: dict[str, Any]) -> dict[str, Any]:
    match = {key: item[key] for key in ("platform", "guild_id", "chat_id", "thread_id") if item.get(key)}
    residue = {key: value for key, value in item.items() if key not in (*match, "name", "profile")}
    return {"name": item.get("name"), "match": match, "profile": item.get("profile"), "residue": residue}


def _subscription(name: str, entry: Any) -> dict[str, Any]:
    entry = entry if isinstance(entry, dict) else {}
    known = ("secret", "events", "prompt", "deliver", "skills", "description", "created_at")
    secret = entry.get("secret")
    return {
        "name": name,
        "secret": {"dotenv": secret[2:-1]} if _is_reference(secret) else secret,
        "events": entry.get("events") or None,
        "prompt_template": entry.get("prompt", ""),
        "deliver": target.parse(entry.get("deliver")),
        "skills": entry.get("skills") or [],
        "description": entry.get("description"),
        "created_at": entry.get("created_at"),
        "residue": {key: value for key, value in entry.items() if key not in known},
    }


def _access(ctx: Context, profile: Profile) -> dict[str, Any]:
    here = Context(ctx.home, ctx.folder, profile, ctx.now)
    env = profile.env.values()
    listed = {name.removesuffix("_ALLOWED_USERS").lower() for name in env if name.endswith("_ALLOWED_USERS")}
    configured = {name for name, _ in _map(profile.config.get(("platforms",)))}
    platforms = sorted(listed | configured | set(profile.platforms("approved")))
    pending = {name: len(profile.pairing(f"{name}-pending").items()) for name in profile.platforms("pending")}
    everybody = env.get("GATEWAY_ALLOW_ALL_USERS", "").lower() == "true"
    return {
        "allowlist": {p: users for p in platforms if (users := ops_access.allowlist(here, p))},
        "admins": {p: users for p in platforms if (users := ops_access.admins(here, p))},
        "pending_pairings": {name: count for name, count in pending.items() if count},
        "policy": {
            p: "open" for p in platforms if everybody or env.get(f"{p.upper()}_ALLOW_ALL_USERS", "").lower() == "true"
        },
        "pairing_ttl_minutes": ops_access.CODE_TTL // 60,
    }


VERBS: dict[str, Verb] = {"state.get": verb(_get, reads=True)}
