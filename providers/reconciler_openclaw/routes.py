"""Routes: `bindings`, a list whose entries have no ids. A binding is known by what it matches.

Entries of others, and all that a route has no word for (`comment`, `session`), stay as they are, in their places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.action import Action, Fact, Row
from reconciler.observe import Observation, Observed, Things
from reconciler.provider import Canon
from reconciler_shape.plain import digest
from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

from . import terms
from .edits import Config, Edit, Refused, written
from .view import Path, View

ROOT = "bindings"
_WORDS = {"channel": "channel", "account": "accountId", "guild": "guildId", "team": "teamId"}
_KNOWN_BY = "a binding is known by what it matches: give the route a new name"
Match = Mapping[str, Any]


def owned(path: Path, agent: Path) -> str:
    """Why a path is no setting, "" if it may be one."""
    return "bindings belong to the routes: declare them as routes: {NAME: {match: …}}" if path[0] == ROOT else ""


def paths(key: str, agent: Path) -> list[Path]:
    return [(ROOT,)]


def known(match: Match) -> str:
    """What a binding is known by: its match as one text, `telegram account=ops group=-100`."""
    said = [str(match.get("channel", ""))]
    said += [f"{word}={match[word]}" for word in ("account", "guild", "team") if match.get(word)]
    if match.get("chat"):
        said.append(f"{match.get('chat_kind', 'chat')}={match['chat']}")
    if match.get("roles"):
        said.append(f"roles={','.join(sorted(map(str, match['roles'])))}")
    return " ".join(said)


# -- reading


def match_of(entry: Any) -> Match | None:
    """What a binding matches in the setup's words; None for what is no route (a session of ACP, or odd)."""
    native = terms.table(entry, "match")
    if not native.get("channel") or terms.table({"": entry}, "").get("type", "route") != "route":
        return None
    found = {word: str(native[key]) for word, key in _WORDS.items() if native.get(key) not in (None, "")}
    peer = native.get("peer")
    if isinstance(peer, Mapping):
        kind = str(peer.get("kind", ""))
        found |= {"chat_kind": "direct" if kind == "dm" else kind, "chat": str(peer.get("id", ""))}
    roles = native.get("roles")
    return {**found, "roles": sorted(map(str, roles))} if isinstance(roles, list) and roles else found


def _entries(tree: Mapping[str, Any]) -> Iterator[tuple[str, Match, Mapping[str, Any]]]:
    """Id, match and entry of each route; of two with the same match OpenClaw goes by the first."""
    told = set()
    listed = tree.get(ROOT)
    for entry in listed if isinstance(listed, list) else ():
        match = match_of(entry)
        if match is not None and known(match) not in told:
            told.add(known(match))
            yield known(match), match, entry


def read(view: View, wanted: Sequence[str], everything: bool) -> Things:
    """All bindings where a route of the profile is wanted, since an id is in no address; else, with `everything`, those
    that lead to the profile."""
    found = {}
    for key, match, entry in _entries(view.tree):
        profile = view.roster.profile(str(entry.get("agentId") or "").strip().lower())
        if wanted or (everything and profile == view.profile):
            fields: dict[str, Json] = {"match": dict(match), "profile": profile}
            mark = digest(entry, view.hider.key)
            found[key] = Observed(Kind.ROUTE, view.profile, key, fields, name=key, fingerprint=mark)
    return found


def express(thing: Observed, names: Collection[str]) -> Mapping[str, Json]:
    leads = thing.get("profile")
    return {"match": thing.fields["match"], **({"profile": leads} if leads != thing.profile else {})}


# -- declared


def declared_match(match: Match) -> Match:
    """A declared match in the terms of a read one."""
    found = dict(match)
    return {**found, "roles": sorted(map(str, found["roles"]))} if found.get("roles") else found


def canon(resource: Resource, near: terms.Near) -> Canon:
    fields, refused = dict(resource.fields), {}
    match = fields["match"] = declared_match(fields["match"])
    if "thread" in match:
        refused["match"] = "OpenClaw's bindings know no threads"
    elif ("chat" in match) != ("chat_kind" in match):
        refused["match"] = "OpenClaw knows a chat by its id and its kind: say chat and chat_kind"
    bound = near.resolve(resource.address.path)
    if bound and bound != known(match):
        refused["match"] = _KNOWN_BY
    if "order" in fields:
        refused["order"] = "OpenClaw takes the binding that says most (a chat, then a guild, then an account)"
    target = str(fields["profile"])
    there = target in near.roster.profiles or any(a.profile == target for a in near.declared if a.kind is Kind.PROFILE)
    if not there:
        refused["profile"] = (
            f"route {resource.address.key} leads to profile {target}, which is neither here nor declared"
        )
    twins = [
        str(a)
        for a, r in near.declared.items()
        if a.kind is Kind.ROUTE and a != resource.address and known(declared_match(r.fields["match"])) == known(match)
    ]
    if twins:
        refused["match"] = f"{', '.join(twins)} matches the same; OpenClaw goes by the first"
    return Canon(fields, refused=refused)


def suggested(observation: Observation, resources: Mapping[Address, Resource]) -> Observation:
    """Bindings that a declared route matches bear its name: one that is there already is found, and not made twice."""
    things = dict(observation.things)
    for address, resource in resources.items():
        found = things.get((address.profile, Kind.ROUTE)) if address.kind is Kind.ROUTE else None
        key = known(declared_match(resource.fields["match"])) if isinstance(found, Mapping) else ""
        if isinstance(found, Mapping) and key in found:
            things[address.profile, Kind.ROUTE] = {**found, key: replace(found[key], name=address.key)}
    return replace(observation, things=things)


def matches(near: terms.Near, profile: str) -> Iterator[Match]:
    """What leads to a profile: declared routes, and bindings that are there."""
    for address, resource in near.declared.items():
        if address.kind is Kind.ROUTE and resource.fields.get("profile") == profile:
            yield resource.fields["match"]
    for _, match, entry in _entries(near.tree):
        if near.roster.profile(str(entry.get("agentId") or "").lower()) == profile:
            yield match


def leads(match: Match, channel: str, account: str) -> bool:
    """Whether a match takes something of this account."""
    said = match.get("account", "default")
    return match.get("channel") == channel and said in ("*", account or "default")


# -- writing


def edits(action: Action, config: Config) -> Iterator[Edit]:
    values: dict[str, Any] = written(action)
    key = action.id or known(values["match"])
    target = values.get("profile")
    agent = config.roster.agent(str(target)).id if target is not None else ""
    making = action.row in (Row.CREATE, Row.MISSING)
    if making and any(key == there for there, _, _ in _entries(config.authored.tree)):
        raise Refused(f"there is a binding for {key} already")

    def rewrite(old: Any) -> list[Any]:
        listed = list(old) if isinstance(old, list) else []
        if making:
            return [*listed, {"agentId": agent, "match": _native(values["match"])}]
        made, done = [], False
        for entry in listed:
            match = match_of(entry)
            ours = not done and match is not None and known(match) == key
            done = done or ours
            if not ours:
                made.append(entry)
            elif action.row is not Row.DELETE:
                made.append({**entry, "agentId": agent} if agent else entry)
        return made

    yield (ROOT,), rewrite


def _native(match: Match) -> dict[str, Any]:
    found: dict[str, Any] = {key: match[word] for word, key in _WORDS.items() if match.get(word)}
    if match.get("chat"):
        found["peer"] = {"kind": match["chat_kind"], "id": match["chat"]}
    return {**found, "roles": list(match["roles"])} if match.get("roles") else found


def facts(action: Action, observed: Mapping[str, Any], effective: Mapping[str, Any]) -> set[Fact]:
    """Who talks there gets another agent, with its own tools."""
    return {Fact.WIDENS_ACCESS}


def made_id(action: Action) -> str:
    """The id of a binding that a row makes."""
    made: dict[str, Any] = written(action) if action.row in (Row.CREATE, Row.MISSING) else {}
    return known(made["match"]) if made else ""
