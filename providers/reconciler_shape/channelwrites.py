"""What changes in a Hermes-shaped home for a channel's fields: paths of config.yaml, variables of `.env`, and pairings
that are revoked. Pure; also sent to the worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import channels, platforms
from .channels import ADMINS, ALLOW, EVERYBODY, Dialect, Path, Store
from .plain import HIDDEN, same


@dataclass(slots=True)
class Changes:
    """What a write changes: paths of config.yaml, variables of `.env` (None: taken out), and pairings to revoke."""

    sets: list[tuple[Path, Any]] = field(default_factory=list)
    unsets: list[Path] = field(default_factory=list)
    env: dict[str, str | None] = field(default_factory=dict)
    revoke: list[str] = field(default_factory=list)


def changes(store: Store, name: str, written: Mapping[str, Any], dialect: Dialect) -> Changes:
    """What carries the written fields out; None takes a field away."""
    made = Changes()
    platform = platforms.of(name)
    for key, value in written.items():
        match key:
            case "enabled":
                _write_enabled(store, name, platform, value, made)
            case "secrets":
                _write_secrets(store, name, platform, value or {}, dialect, made)
            case "allow":
                _write_allow(store, name, platform, _members(value), made, everybody=written.get("open", True))
            case "admins":
                _write_admins(store, name, _members(value), dialect, made)
            case "open":
                _variable(store, platform.everybody, "true" if value else None, made)
                if not value and "allow" not in written:
                    allowed = channels.admitted(store, name, channels.extra_of(store, name))[0]
                    _write_allow(store, name, platform, allowed, made, everybody=False)
            case "owner_chat":
                chat, thread = (value["chat"], value["thread"]) if isinstance(value, dict) else (value, None)
                _variable(store, platform.home, chat, made)
                _variable(store, platform.thread, thread, made)
                if not value:
                    made.unsets += [
                        (*p, "home_channel") for p in channels.blocks_of(name)[:2] if store.block((*p, "home_channel"))
                    ]
            case "adapter":
                _write_extra(store, name, {dialect.adapter: value}, made)
            case "extra":
                now = channels.observed(store, name, dialect)
                old = dict(now.fields.get("extra", {})) if now else {}
                gone = dict.fromkeys(old.keys() - (value or {}).keys())
                _write_extra(store, name, {**gone, **(value or {})}, made)
    return made


def removal(store: Store, name: str) -> Changes:
    """What takes a channel away, with the pairings of those on its lists; credentials stay in `.env`."""
    made = Changes()
    *inner, top = channels.blocks_of(name)
    made.unsets += [path for path in inner if store.block(path) is not None]
    made.unsets += [(*top, key) for key in store.block(top) or {} if key in channels.OWN or key in (ALLOW, *ADMINS)]
    for variable in platforms.of(name).own:
        _variable(store, variable, None, made)
    own = channels.extra_of(store, name).get(ALLOW)
    listed = {*channels.ids_of(store.variable(platforms.of(name).allow)), *channels.ids_of(own)}
    made.revoke = [one for one in store.paired.get(name, ()) if one in listed]
    return made


def _members(value: Any) -> list[str]:
    found = value.get("only", []) if isinstance(value, dict) else value
    return [str(one) for one in found or ()]


def _variable(store: Store, name: str, value: str | None, made: Changes) -> None:
    """In `.env`, which wins over a scalar at the top of config.yaml."""
    if not name:
        return
    if value or store.env.get(name) is not None:
        made.env[name] = value or None
    if not value and name in store.raw:
        made.unsets.append((name,))


def _write_enabled(store: Store, name: str, platform: platforms.Platform, value: Any, made: Changes) -> None:
    if platform.flag:
        _variable(store, platform.flag, None, made)
    said = [path for path in channels.blocks_of(name) if "enabled" in (store.block(path) or {})]
    if value is None:
        made.unsets += [(*path, "enabled") for path in said]
    else:
        made.sets.append(((*(said[-1] if said else ("platforms", name)), "enabled"), value))


def _write_secrets(
    store: Store, name: str, platform: platforms.Platform, value: Mapping[str, str], dialect: Dialect, made: Changes
) -> None:
    """Only names: what `.env` holds under the usual one counts by itself."""
    if not dialect.references:
        return
    inner, middle, _ = channels.blocks_of(name)
    known = channels.observed(store, name, dialect)
    for key in {*(known.fields.get("secrets", {}) if known else {}), *value}:
        inside = (key,) if key in ("token", "api_key") else ("extra", key)
        if key in value and platform.credentials.get(key) != value[key]:
            made.sets.append(((*middle, *inside), f"${{{value[key]}}}"))
        else:
            places = [path for path in (inner, middle) if key in (store.block((*path, *inside[:-1])) or {})]
            made.unsets += [(*path, *inside) for path in places]


def _write_allow(
    store: Store, name: str, platform: platforms.Platform, wanted: list[str], made: Changes, everybody: Any
) -> None:
    """An id that is to be let in gets onto every list that there is; one that is not leaves them all."""
    listed, extra = channels.ids_of(store.variable(platform.allow)), channels.extra_of(store, name)
    keep = [EVERYBODY] if everybody and EVERYBODY in listed else []
    after = [*keep, *(one for one in listed if one in wanted), *(one for one in wanted if one not in listed)]
    if after != listed:
        _variable(store, platform.allow, ",".join(after) or None, made)
    if extra.get(ALLOW) is not None:
        _each_list(store, name, ALLOW, wanted, made, keep=everybody)
    made.revoke += [one for one in store.paired.get(name, ()) if one not in wanted]


def _write_admins(store: Store, name: str, wanted: list[str], dialect: Dialect, made: Changes) -> None:
    extra = channels.extra_of(store, name)
    for key in ADMINS:
        if extra.get(key) is not None:
            _each_list(store, name, key, wanted, made, keep=False)
    if extra.get(ADMINS[0]) is None and wanted:
        path = ("platforms", name, ADMINS[0]) if dialect.in_block else ("platforms", name, "extra", ADMINS[0])
        if dialect.in_block and channels.bridging(store, name)[0] != ("platforms", name):
            path = ("platforms", name, "extra", ADMINS[0])
        made.sets.append((path, wanted))


def _each_list(store: Store, name: str, key: str, wanted: list[str], made: Changes, keep: Any) -> None:
    """The list under `key` where the loader takes it from. One that becomes empty stays, as an empty list."""
    now = channels.ids_of(channels.extra_of(store, name)[key])
    stars = [EVERYBODY] if keep and EVERYBODY in now else []
    after = [*stars, *(one for one in now if one in wanted), *(one for one in wanted if one not in now)]
    if after != now:
        made.sets.append((_place(store, name, key), after))


def _place(store: Store, name: str, key: str) -> Path:
    """Where a key of `extra` counts."""
    path, block = channels.bridging(store, name)
    if key in channels.BRIDGED and key in block:
        return (*path, key)
    inner, middle, _ = channels.blocks_of(name)
    for above in (middle, inner):
        if key in (store.block((*above, "extra")) or {}):
            return (*above, "extra", key)
    return (*middle, "extra", key)


def _write_extra(store: Store, name: str, values: Mapping[str, Any], made: Changes) -> None:
    now = channels.extra_of(store, name)
    for key, value in values.items():
        if value is None:
            made.unsets += _holding(store, name, key)
        else:
            for path, item in _differences(_place(store, name, key), now.get(key), value, made):
                made.sets.append((path, item))


def _holding(store: Store, name: str, key: str) -> Iterator[Path]:
    inner, middle, _ = channels.blocks_of(name)
    path, block = channels.bridging(store, name)
    if key in channels.BRIDGED and key in block:
        yield (*path, key)
    for above in (inner, middle):
        if key in (store.block((*above, "extra")) or {}):
            yield (*above, "extra", key)


def _differences(path: Path, old: Any, new: Any, made: Changes) -> Iterator[tuple[Path, Any]]:
    """Only what differs, so that comments and hidden values beside it stay. A hidden value stands for what is there."""
    if isinstance(new, dict) and HIDDEN in new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and new:
        made.unsets += [(*path, key) for key in old.keys() - new.keys()]
        for key, value in new.items():
            yield from _differences((*path, key), old.get(key), value, made)
    elif not same(old, new):
        yield path, new
