"""Webhooks: `hooks.mappings` by their `id`, and `hooks.token`, the one secret that all of them share.

A webhook of a profile is a mapping for its agent. One that has no id is left alone; so is all of a mapping that no
field stands for (`match`, `transform`, `model`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action, Fact, Row
from reconciler.observe import Observed, Things
from reconciler.provider import Canon
from reconciler_shape.plain import digest
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import home, secretrefs, terms
from .edits import GONE, Config, Edit, Refused, written
from .view import Path, View, look_up

ROOT: Path = ("hooks", "mappings")
TOKEN: Path = ("hooks", "token")
_TEXTS = {"prompt": "messageTemplate", "description": "name"}
_LAST = "last"


def owned(path: Path, agent: Path) -> str:
    """Why a path is no setting, "" if it may be one."""
    if path[:2] == ROOT:
        return "hooks.mappings belong to the webhooks: declare them as webhooks: {ID: …}"
    return ""


def paths(key: str, agent: Path) -> list[Path]:
    return [ROOT, TOKEN]


# -- reading


def mappings(tree: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Those that have an id, which is told once: the first match wins."""
    told = set()
    listed = look_up(tree, ROOT)
    for entry in listed if isinstance(listed, list) else ():
        key = str(entry.get("id") or "").strip() if isinstance(entry, Mapping) else ""
        if key and key not in told:
            told.add(key)
            yield key, entry


def read(view: View, wanted: Sequence[str], everything: bool) -> Things:
    """The wanted webhooks of the profile that are there."""
    token, found = look_up(view.tree, TOKEN), {}
    for key, entry in mappings(view.tree):
        if not (everything or key in wanted) or view.roster.profile(_agent(entry)) != view.profile:
            continue
        wakes = entry.get("action") == "wake"
        fields: dict[str, Json] = {"deliver": "local" if wakes else _target(entry)}
        texts = {word: entry[native] for word, native in _TEXTS.items() if entry.get(native)}
        fields |= {word: view.hider.value(text) for word, text in texts.items() if not (wakes and word == "prompt")}
        if token not in (None, ""):
            name = secretrefs.name_of(token)
            fields["secret"] = {"secret": name} if name else view.hider.value(token, "token")
        mark = digest(entry, view.hider.key)
        found[key] = Observed(Kind.WEBHOOK, view.profile, key, fields, name=key, fingerprint=mark)
    return found


def _agent(entry: Mapping[str, Any]) -> str:
    return str(entry.get("agentId") or "").strip().lower()


def _target(entry: Mapping[str, Any]) -> Json:
    if entry.get("deliver") is False:
        return "local"
    channel, to = str(entry.get("channel") or _LAST), entry.get("to")
    if channel == _LAST and not to:
        return "owner_chat"
    return {"to": channel, **({"chat": str(to)} if to else {})}


def express(thing: Observed, names: Collection[str]) -> Mapping[str, Json]:
    fields = {name: said for name, value in thing.fields.items() if (said := terms.sayable(value)) is not None}
    return fields if {"secret", "prompt"} <= fields.keys() else {}


# -- declared


def canon(resource: Resource, near: terms.Near) -> Canon:
    fields, refused = dict(resource.fields), {}
    for word, why in {
        "events": "OpenClaw's mappings do not ask what event it is",
        "skills": "an agent of OpenClaw loads its skills itself",
        "deliver_only": "OpenClaw always lets an agent run",
    }.items():
        if fields.get(word):
            refused[word] = why
    target = fields.get("deliver")
    if isinstance(target, Mapping) and "thread" in target:
        refused["deliver"] = "a webhook of OpenClaw delivers to a chat, and to no thread"
    elif isinstance(target, Mapping) and "/" in str(target.get("to")):
        refused["deliver"] = "a webhook of OpenClaw names a channel, and no account of it"
    other = next((_agent(e) for key, e in mappings(near.tree) if key == resource.address.key), None)
    elsewhere = near.elsewhere(resource)
    if other is not None and near.roster.profile(other) != resource.address.profile:
        elsewhere = near.roster.profile(other)
    if elsewhere:
        refused[""] = f"{resource.address.key} is profile {elsewhere}'s too: its id is one for all profiles"
    refused |= _one_secret(resource, near)
    held = near.missing([fields["secret"]["secret"]], "hooks.token")
    on = terms.table(near.tree, "hooks").get("enabled") is True or _declares_hooks(near)
    notes = () if on else ("nothing answers until the setting hooks.enabled is true",)
    return Canon(fields, refused=refused, held=held, notes=notes)


def _declares_hooks(near: terms.Near) -> bool:
    return any(
        (a.kind, a.key) == (Kind.SETTING, "hooks.enabled") and r.fields.get("value") is True
        for a, r in near.declared.items()
    )


def _one_secret(resource: Resource, near: terms.Near) -> dict[str, str]:
    """One secret proves the calls of all webhooks: one that is declared with another cannot be."""
    said = {a: r.fields["secret"]["secret"] for a, r in near.declared.items() if a.kind is Kind.WEBHOOK}
    now = terms.table(near.tree, "hooks").get("token")
    current = now.get("secret") if isinstance(now, Mapping) else None
    most = Counter(said.values()).most_common(1)
    one = current if current in said.values() else most[0][0] if most else None
    mine = resource.fields["secret"]["secret"]
    if one is None or mine == one:
        return {}
    others = ", ".join(sorted(a.key for a, name in said.items() if name == one))
    return {"secret": f"OpenClaw has one secret for all webhooks (hooks.token), and it is {one} for {others}"}


def shares(key: str, declared: Mapping[Address, Resource]) -> bool:
    """Whether a setting is the secret that declared webhooks share."""
    return key == ".".join(map(str, TOKEN)) and any(address.kind is Kind.WEBHOOK for address in declared)


# -- writing


def edits(action: Action, config: Config) -> Iterator[Edit]:
    key, values = action.address.key, written(action)
    agent = config.roster.agent(action.address.profile).id
    first = action.address.profile == home.DEFAULT
    there = dict(mappings(config.authored.tree)).get(key)
    making = action.row in (Row.CREATE, Row.MISSING)
    if making and there is not None:
        raise Refused(f"hooks.mappings has a {key} already")

    def rewrite(old: Any) -> list[Any]:
        listed = list(old) if isinstance(old, list) else []
        if making:
            base = {"id": key, "match": {"path": key}, "action": "agent", **({} if first else {"agentId": agent})}
            return [*listed, _put(base, values)]
        at = next((i for i, entry in enumerate(listed) if isinstance(entry, Mapping) and entry.get("id") == key), None)
        if at is None:
            return listed
        return [*listed[:at], *([] if action.row is Row.DELETE else [_put(listed[at], values)]), *listed[at + 1 :]]

    yield ROOT, rewrite
    said = values.get("secret")
    if isinstance(said, Mapping) and action.row is not Row.DELETE:
        yield TOKEN, secretrefs.variable(said["secret"])


def _put(entry: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    new: dict[str, Any] = {}
    for word, native in _TEXTS.items():
        if word in values:
            new[native] = GONE if values[word] is CLEAR else values[word]
    if "deliver" in values:
        target = values["deliver"]
        new |= {"deliver": target not in (CLEAR, "local"), "channel": GONE, "to": GONE}
        if target == "owner_chat":
            new["channel"] = _LAST
        elif isinstance(target, Mapping):
            new |= {"channel": target["to"], "to": target.get("chat", GONE)}
    return {k: v for k, v in {**entry, **new}.items() if v is not GONE}


def facts(action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
    changed = set(written(action))
    found = {Fact.WIDENS_ACCESS} if action.row is not Row.UPDATE else set()
    if "secret" in changed:
        found.add(Fact.NEW_CREDENTIAL)
    if changed - {"description", "secret"} and effective.get("deliver") != "local":
        found.add(Fact.REACHES_PEOPLE)
    return found
