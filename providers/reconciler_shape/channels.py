"""A channel of a Hermes-shaped home: what its config tree, its `.env` and its pairings say together, as the loader
puts them together. What is written is in `channelwrites`. Pure; also sent to the worker."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import platforms

Path = tuple[str, ...]

ALLOW = "allow_from"
ADMINS = ("allow_admin_from", "group_allow_admin_from")
EVERYBODY = "*"
# Keys of a platform's own block that the loader carries over into its `extra`, over what stands there.
BRIDGED = frozenset({
    "unauthorized_dm_behavior", "notice_delivery", "reply_prefix", "reply_in_thread", "cron_continuable_surface",
    "require_mention", "free_response_channels", "mention_patterns", "exclusive_bot_mentions", "dm_policy", ALLOW,
    *ADMINS, "user_allowed_commands", "group_policy", "group_allow_from", "group_user_allowed_commands",
    "channel_prompts", "gateway_restart_notification", "typing_indicator", "typing_status_text",
})  # fmt: skip
OWN = ("enabled", "token", "api_key", "home_channel", ALLOW, *ADMINS)
"""What a block says of the channel itself, beside `extra`."""
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_OPEN = ("true", "1", "yes")
_ID = re.compile(r"[^\s,=#$\"'\\`]+")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a harness makes of the shape. `references`: `${NAME}` in a block is expanded. `adapter`: the key below
    `extra` that names one. `in_block`: admins stand in the block itself, and not below `extra`."""

    references: bool = False
    adapter: str = ""
    in_block: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """What a profile's channels are made of: config.yaml, the `.env` as its reader reads it, and the ids that pairing
    approved, by platform."""

    raw: Mapping[str, Any]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    paired: Mapping[str, Collection[str]] = field(default_factory=dict)

    def variable(self, name: str) -> str:
        """A variable's value; a scalar at the top of config.yaml counts where `.env` is silent, as in the gateway."""
        found = self.env.get(name)
        if found:
            return found
        raw = self.raw.get(name)
        return str(raw) if isinstance(raw, (str, int, float)) and not isinstance(raw, bool) else ""

    def variables(self, names: Sequence[str]) -> dict[str, str]:
        return {name: value for name in names if (value := self.variable(name))}

    def block(self, path: Path) -> Mapping[str, Any] | None:
        here: Any = self.raw
        for part in path:
            here = here.get(part) if isinstance(here, dict) else None
        return here if isinstance(here, dict) else None


@dataclass(frozen=True, slots=True)
class Found:
    """A channel as found. `fields` hold no credential, `literals` those that stand in config.yaml in the clear, by the
    channel's key; `explicit`: a file says whether it is on; `enabling`: the variables that turn it on by themselves."""

    fields: Mapping[str, Any]
    literals: Mapping[str, Any] = field(default_factory=dict, repr=False)
    explicit: bool = False
    enabling: tuple[str, ...] = ()


def id_problem(value: str) -> str:
    """Why an id cannot stand in a list of `.env`, "" if it can."""
    return "" if _ID.fullmatch(value) else f"{value!r} cannot stand in a list of .env (no space, comma, quote, =, #, $)"


def blocks_of(name: str) -> tuple[Path, Path, Path]:
    """The three blocks, the one that wins last."""
    return ("gateway", "platforms", name), ("platforms", name), (name,)


def names(store: Store) -> list[str]:
    """The channels that are there."""
    found = set(platforms.KNOWN)
    for path in (("gateway", "platforms"), ("platforms",)):
        found |= {str(name) for name in store.block(path) or ()}
    return sorted(name for name in found if there(store, name))


def there(store: Store, name: str) -> bool:
    """Whether anything but a credential speaks of the channel."""
    *inner, top = (store.block(path) for path in blocks_of(name))
    if any(inner) or any(key in (top or {}) for key in OWN):
        return True
    return bool(store.variables(platforms.of(name).own)) and name in platforms.KNOWN


def covers(path: Sequence[str]) -> bool:
    """Whether a leaf of config.yaml is a channel's to say."""
    if len(path) == 1:
        return any(path[0] in platform.own for platform in platforms.KNOWN.values())
    for above in (("gateway", "platforms"), ("platforms",)):
        if tuple(path[: len(above)]) == above and len(path) > len(above) + 1:
            return path[len(above) + 1] in ("extra", *OWN)
    return path[0] in platforms.KNOWN and path[1] in OWN


def standing(store: Store, name: str) -> dict[str, Any] | None:
    """All that says something of a channel but its credentials' values, to tell whether somebody changed it; None if
    there is none."""
    if not there(store, name):
        return None
    platform = platforms.of(name)
    return {
        "blocks": [store.block(path) for path in blocks_of(name)],
        "variables": store.variables(platform.own),
        "credentials": sorted(store.variables(_credentials(platform))),
        "paired": sorted(store.paired.get(name, ())),
    }


def _credentials(platform: platforms.Platform) -> tuple[str, ...]:
    names = [*platform.credentials.values(), *(name for group in platform.enables for name in group)]
    return tuple(dict.fromkeys(names))


# -- what is there


def observed(store: Store, name: str, dialect: Dialect) -> Found | None:
    """The channel in the setup's words, as the loader makes it of all its places; None if there is none."""
    if not there(store, name):
        return None
    platform, filled = platforms.of(name), store.variables(_credentials(platforms.of(name)))
    fields: dict[str, Any] = {}
    enabling = platform.enabling(filled)
    on, explicit = _enabled(store, name, bool(enabling))
    if explicit or platform.known:
        fields["enabled"] = on
    extra = dict(extra_of(store, name))
    fields["secrets"], literals = _secrets(store, platform, name, extra, dialect)
    allow, everybody = admitted(store, name, extra)
    admins = [one for key in ADMINS for one in ids_of(extra.get(key))]
    for key in (ALLOW, *ADMINS):
        extra.pop(key, None)
    fields["open"] = everybody
    if dialect.adapter and isinstance(extra.get(dialect.adapter), str):
        fields["adapter"] = extra.pop(dialect.adapter)
    chat = _home(store, platform, name)
    more = {"allow": allow, "admins": list(dict.fromkeys(admins)), "owner_chat": chat, "extra": extra}
    fields |= {key: value for key, value in more.items() if value}
    if not fields["secrets"]:
        del fields["secrets"]
    return Found(fields, literals, explicit, enabling)


def _enabled(store: Store, name: str, by_env: bool) -> tuple[bool, bool]:
    """Whether it is on, and whether that is said and not only followed."""
    platform = platforms.of(name)
    flag = store.variable(platform.flag).lower() if platform.flag else ""
    if flag in _TRUE:
        return True, True
    if flag in ("false", "0", "no") and platform.flag == "WHATSAPP_ENABLED":
        return False, True
    if by_env and platform.forced:
        return True, False
    for path in reversed(blocks_of(name)):
        block = store.block(path) or {}
        if "enabled" in block:
            return _flag(block["enabled"]), True
    return by_env, False


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _TRUE
    return bool(value)


def bridging(store: Store, name: str) -> tuple[Path, Mapping[str, Any]]:
    """The block whose own keys win over every `extra`."""
    inner, middle, top = blocks_of(name)
    for path in (top, inner, middle):
        block = store.block(path)
        if block is not None:
            return path, block
    return middle, {}


def extra_of(store: Store, name: str) -> dict[str, Any]:
    inner, middle, _ = blocks_of(name)
    extra = {**(store.block((*inner, "extra")) or {}), **(store.block((*middle, "extra")) or {})}
    return extra | {key: value for key, value in bridging(store, name)[1].items() if key in BRIDGED}


def _secrets(
    store: Store, platform: platforms.Platform, name: str, extra: dict[str, Any], dialect: Dialect
) -> tuple[dict[str, str], dict[str, Any]]:
    """The credentials by name, and those that stand there in the clear; both are taken out of `extra`."""
    found = {key: variable for key, variable in platform.credentials.items() if store.variable(variable)}
    if not platform.known and not found and store.variable(f"{platform.prefix}_TOKEN"):
        found = {"token": f"{platform.prefix}_TOKEN"}
    literals: dict[str, Any] = {}
    inner, middle, _ = blocks_of(name)
    written = {
        key: block[key]
        for path in (inner, middle)
        if (block := store.block(path))
        for key in ("token", "api_key")
        if block.get(key)
    }
    for key, value in (*written.items(), *list(extra.items())):
        match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if match and dialect.references and (key in written or _credential(key)):
            found[key] = match[1]
            extra.pop(key, None)
        elif key in written and key not in found:
            literals[key] = value
    return found, literals


def _credential(key: str) -> bool:
    return key.lower().endswith(("token", "key", "secret", "password", "credential"))


def ids_of(value: Any) -> list[str]:
    """A list of ids as the loader takes it: a list, a text with commas, or one value."""
    if value is None:
        return []
    items = value if isinstance(value, list) else str(value).split(",")
    return list(dict.fromkeys(text for item in items if (text := str(item).strip())))


def admitted(store: Store, name: str, extra: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Who may talk there, and whether anybody may. A list of the block's own narrows the one of `.env`."""
    platform = platforms.of(name)
    listed = ids_of(store.variable(platform.allow))
    own = ids_of(extra[ALLOW]) if extra.get(ALLOW) is not None else None
    everybody = store.variable(platform.everybody).lower() in _OPEN
    paired = [str(one) for one in store.paired.get(name, ())]
    if own is None:
        found = [*listed, *paired]
    elif not listed or EVERYBODY in listed:
        found = own
    elif EVERYBODY in own:
        found = [*listed, *paired]
    else:
        found = [one for one in own if one in listed or one in paired]
    everybody = everybody or EVERYBODY in found
    return sorted({one for one in found if one != EVERYBODY}), everybody


def _home(store: Store, platform: platforms.Platform, name: str) -> Any:
    chat, thread = (store.variable(platform.home), store.variable(platform.thread)) if platform.home else ("", "")
    if not chat:
        for path in reversed(blocks_of(name)[:2]):
            block = store.block((*path, "home_channel"))
            if block and block.get("chat_id"):
                chat, thread = str(block["chat_id"]), str(block.get("thread_id") or "")
                break
    return {"chat": chat, "thread": thread} if chat and thread else chat
