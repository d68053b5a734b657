"""Channels: `channels.CHANNEL` and its accounts, as OpenClaw puts the two together (`mergeAccountConfig`).

`CHANNEL` is the default account: the block itself with `accounts.default` over it. `CHANNEL/ACCOUNT` is that account
over the block. What is written of a channel goes where it counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Fact, FieldChange, Row
from reconciler.observe import Observed, Things
from reconciler.provider import Canon
from reconciler.values import members
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.channel import split_key
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json
from reconciler_specs.table import named_in

from . import home, routes, secretrefs, terms
from .edits import GONE, Config, Edit, changes_of, differences, seen
from .view import Path, View

ROOT = "channels"
SHARED = frozenset({"defaults", "modelByChannel"})
"""Keys of `channels` that are no channel: settings."""
_OF_ROOT = ("accounts", "defaultAccount")
_DEFAULT = ("", "default")
_EVERYBODY = "*"
_SAID = {"enabled": "enabled", "allowFrom": "allow", "accounts": "CHANNEL/ACCOUNT"}


def owned(path: Path, agent: Path) -> str:
    """Why a path is no setting, "" if it may be one."""
    if path[0] != ROOT or (len(path) > 1 and path[1] in SHARED):
        return ""
    name = path[1] if len(path) > 1 else "NAME"
    return f"{'.'.join(map(str, path))} belongs to a channel: declare it as channels: {{{name}: …}}"


def paths(key: str, agent: Path) -> list[Path]:
    return [(ROOT, split_key(key)[0])]


# -- reading


def keys(tree: Mapping[str, Any]) -> list[str]:
    """The channels and accounts that are there."""
    found = []
    for name, block in terms.table(tree, ROOT).items():
        if name in SHARED or not isinstance(block, Mapping):
            continue
        accounts = [f"{name}/{account}" for account in terms.table(block, "accounts") if account != "default"]
        found += [*([name] if _stands(block, "") else []), *accounts]
    return found


def read(view: View, wanted: Sequence[str], everything: bool) -> Things:
    """The wanted channels that are there; with `everything`, all of the home for the default profile."""
    found = {}
    known = keys(view.tree) if everything and view.first else []
    for key in dict.fromkeys([*known, *wanted]):
        thing = _observed(view, key)
        if thing is not None:
            found[key] = thing
    return found


def _stands(block: Mapping[str, Any], account: str) -> bool:
    accounts = terms.table(block, "accounts")
    if account in _DEFAULT:
        return "default" in accounts or any(key not in _OF_ROOT for key in block)
    return account in accounts


def _parts(tree: Mapping[str, Any], key: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What the channel says for all of its accounts, and what the account itself says."""
    name, account = split_key(key)
    block = terms.table(tree, ROOT, name)
    shared = {k: v for k, v in block.items() if k not in _OF_ROOT}
    return shared, terms.table(block, "accounts", account or "default")


def _observed(view: View, key: str) -> Observed | None:
    name, account = split_key(key)
    block = terms.table(view.tree, ROOT, name)
    if not _stands(block, account):
        return None
    shared, own = _parts(view.tree, key)
    effective = {**shared, **own}
    listed, policy = effective.get("allowFrom"), effective.get("dmPolicy")
    fields: dict[str, Json] = {
        "enabled": shared.get("enabled") is not False and own.get("enabled") is not False,
        "open": _open(effective),
    }
    if isinstance(listed, list):
        fields["allow"] = _ids(listed)
    credentials, extra = {}, {}
    for word, value in effective.items():
        if word in ("enabled", "allowFrom") or (word == "dmPolicy" and policy == "open"):
            continue
        if secretrefs.is_credential(word, value):
            credentials[word] = secretrefs.name_of(value) or view.hider.value(secretrefs.named(value, word), "secret")
        else:
            extra[word] = terms.read(value, view.hider, word)
    if account == "" and "defaultAccount" in block:
        extra["defaultAccount"] = block["defaultAccount"]
    fields |= {word: part for word, part in (("secrets", credentials), ("extra", extra)) if part}
    inherited = sorted(shared.keys() - own.keys()) if account not in _DEFAULT else []
    return Observed(
        Kind.CHANNEL,
        view.profile,
        key,
        fields,
        name=key,
        defaults=frozenset() if fields["open"] else frozenset({"open"}),
        fingerprint=digest([own, shared if account in _DEFAULT else None], view.hider.key),
        about={"inherited": inherited},
    )


def _open(effective: Mapping[str, Any]) -> bool:
    listed = effective.get("allowFrom")
    everybody = isinstance(listed, list) and any(str(one).strip() == _EVERYBODY for one in listed)
    return everybody and effective.get("dmPolicy") != "disabled"


def _ids(listed: Sequence[Any]) -> list[Json]:
    return list(dict.fromkeys(str(one).strip() for one in listed if str(one).strip() != _EVERYBODY))


def express(thing: Observed, names: Collection[str]) -> Mapping[str, Json]:
    """What an account has from its channel is said there."""
    inherited = set(thing.about.get("inherited", ()))
    fields: dict[str, Any] = {name: value for name, value in thing.fields.items() if name not in thing.defaults}
    credentials, extra = fields.pop("secrets", {}), fields.pop("extra", {})
    said: dict[str, Any] = {"enabled": fields["enabled"]}
    names = {word: name for word, name in credentials.items() if word not in inherited and _is_name(name)}
    if names:
        said["secrets"] = names
    if "allow" in fields and "allowFrom" not in inherited:
        said["allow"] = fields["allow"]
    if fields.get("open") and not {"dmPolicy", "allowFrom"} <= inherited:
        said["open"] = "anyone"
    more = terms.sayable({word: value for word, value in extra.items() if word not in inherited})
    return {**said, "extra": more} if more else said


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(terms.NAME.match(value))


# -- declared


def canon(resource: Resource, near: terms.Near) -> Canon:
    address, fields = resource.address, dict(resource.fields)
    name, account = split_key(address.key)
    refused: dict[str, str] = {}
    if "adapter" in fields:
        refused["adapter"] = "OpenClaw has one way to talk to a channel"
    if "admins" in fields:
        refused["admins"] = "OpenClaw has its owners for all channels together: the setting commands.ownerAllowFrom"
    if "owner_chat" in fields:
        refused["owner_chat"] = "OpenClaw keeps none: it answers in the chat that last spoke"
    extra = fields.get("extra") or {}
    for word, value in extra.items():
        if word in _SAID:
            refused["extra"] = f"{word}: say it as `{_SAID[word]}`"
        elif word == "dmPolicy" and (value == "open" or fields.get("open")):
            refused["extra"] = "dmPolicy: say `open: anyone`"
        elif isinstance(value, Mapping) and set(value) == {"secret"}:
            refused["extra"] = f"{word}: a channel's credential is said in `secrets`"
    other = near.elsewhere(resource)
    if other:
        refused[""] = f"{address.key} is declared for profile {other} too: an account has one place in OpenClaw"
    block = terms.table(near.tree, ROOT, name)
    on = next(
        (r.fields.get("enabled") for a, r in near.declared.items() if (a.kind, a.key) == (Kind.CHANNEL, name)), None
    )
    if account not in _DEFAULT and fields.get("enabled") and block.get("enabled") is False and on is not True:
        refused["enabled"] = f"{name} is off for all of its accounts: declare the channel {name} with enabled: true"
    held = near.missing({*(fields.get("secrets") or {}).values(), *named_in(extra)})
    return Canon(fields, refused=refused, held=held or _unled(resource, near))


def _unled(resource: Resource, near: terms.Near) -> str:
    """Why another profile does not get what comes in here, "" if it does: only a binding leads it there."""
    profile, key = resource.address.profile, resource.address.key
    if profile == home.DEFAULT:
        return ""
    name, account = split_key(key)
    if any(routes.leads(match, name, account) for match in routes.matches(near, profile)):
        return ""
    said = f"{{channel: {name}{f', account: {account}' if account else ''}}}"
    return f"nothing leads {key} to profile {profile}: declare a route with match: {said}"


# -- writing


def edits(action: Action, config: Config) -> Iterator[Edit]:
    tree, key = config.authored.tree, action.address.key
    name, account = split_key(key)
    if action.row is Row.DELETE:
        yield from _deleted(tree, name, account)
        return
    block = terms.table(tree, ROOT, name)
    shared, own = _parts(tree, key)
    rows = {change.field: change for change in changes_of(action)}

    def at(word: str) -> Path:
        if word in _OF_ROOT or (account in _DEFAULT and word not in own):
            return (ROOT, name, word)
        return (ROOT, name, "accounts", account or "default", word)

    if "enabled" in rows:
        said = rows["enabled"].write
        yield at("enabled"), GONE if said is CLEAR else said
        if said is True and account in _DEFAULT and block.get("enabled") is False:
            yield (ROOT, name, "enabled"), True
    if "secrets" in rows:
        yield from _credentials(rows["secrets"], {**shared, **own}, config, at)
    if rows.keys() & {"allow", "open"}:
        yield from _access(rows, shared, own, at)
    if "extra" in rows:
        old, new = seen(rows["extra"]) or {}, rows["extra"].write
        new = {} if new is CLEAR else new
        for word in old.keys() - new.keys():
            yield at(word), GONE
        for word, value in new.items():
            if word not in old or old[word] != value:
                yield from differences(at(word), old.get(word), value, config)


def _deleted(tree: Mapping[str, Any], name: str, account: str) -> Iterator[Edit]:
    """The accounts beside it stay; what they had from the default account's own block goes with that."""
    block = terms.table(tree, ROOT, name)
    others = [other for other in terms.table(block, "accounts") if other != "default"]
    if account not in _DEFAULT:
        yield (ROOT, name, "accounts", account), GONE
    elif not others:
        yield (ROOT, name), GONE
    else:
        yield from (((ROOT, name, word), GONE) for word in block if word not in _OF_ROOT)
        if "default" in terms.table(block, "accounts"):
            yield (ROOT, name, "accounts", "default"), GONE


def _credentials(change: FieldChange, effective: Mapping[str, Any], config: Config, at: Any) -> Iterator[Edit]:
    old, new = seen(change) or {}, {} if change.write is CLEAR else change.write
    for word in old.keys() - new.keys():
        yield at(word), GONE
    for word, name in new.items():
        if old.get(word) != name:
            yield at(word), secretrefs.native({"secret": name}, config.store, effective.get(word))


def _access(
    rows: Mapping[str, FieldChange], shared: Mapping[str, Any], own: Mapping[str, Any], at: Any
) -> Iterator[Edit]:
    """`allowFrom` has who is let in and the `*` of an open channel; ids that stand there keep their form."""
    effective = {**shared, **own}
    now = effective.get("allowFrom")
    listed = list(now) if isinstance(now, list) else []
    forms = {str(one).strip(): one for one in listed}
    allow = rows["allow"].write if "allow" in rows else _ids(listed)
    anyone = rows["open"].write is True if "open" in rows else _open(effective)
    said = [forms.get(str(one), str(one)) for one in ([] if allow is CLEAR else members(allow))]
    made = [*said, *([_EVERYBODY] if anyone else [])]
    inherits = at("allowFrom")[2] == "accounts" and "allowFrom" in shared
    yield at("allowFrom"), made if made or allow is not CLEAR or inherits else GONE
    if anyone and effective.get("dmPolicy") != "open":
        yield at("dmPolicy"), "open"
    elif "open" in rows and not anyone and effective.get("dmPolicy") == "open":
        yield at("dmPolicy"), "pairing"


def facts(action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
    found: set[Fact] = set()
    for change in changes_of(action):
        match change.field:
            case "enabled" | "open" if change.write is True:
                found.add(Fact.WIDENS_ACCESS)
            case "allow" if change.write is not CLEAR:
                if set(members(change.write)) - set(members(seen(change) or [])):
                    found.add(Fact.WIDENS_ACCESS)
            case "secrets":
                found.add(Fact.NEW_CREDENTIAL)
            case "extra":
                found.add(Fact.LOOSENS_SECURITY)  # policies of groups and senders: the direction cannot be told
    return found
