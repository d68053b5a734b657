"""A second look at the home, just before a write: what was planned for must still be what is there (L8)."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.action import Action, FieldChange, Row
from reconciler.errors import ProviderError
from reconciler.observe import ABSENT, Absent, Observation, Observed, Unknown, Wanted
from reconciler.provider import HomeRef
from reconciler.values import same
from reconciler_specs.address import Kind

from . import cli, edits, reading


class Look:
    """The home as it is now, for these actions; it is read once."""

    def __init__(self, ref: HomeRef, actions: Iterable[Action]) -> None:
        wanted = Wanted(frozenset(action.address for action in actions))
        self._reading = reading.Reading(ref, wanted, cli.program(ref))
        self.observation: Observation = self._reading.result()
        if self.observation.blocked:
            raise ProviderError(self.observation.blocked)

    @property
    def config(self) -> edits.Config:
        """The config that a patch is made for."""
        found = self._reading
        views = {name: found.view(name) for name in found.profile_names()}
        return edits.Config(found.config, found.roster, views, found.data.secrets)

    def workspace(self, profile: str) -> str:
        """The folder of a profile's files."""
        return str(self.observation.facts["profiles"][profile]["workspace"])

    def thing(self, action: Action) -> Observed | Absent | Unknown:
        kind, profile = action.address.kind, action.address.profile
        match kind:
            case Kind.PROFILE:
                return self.observation.at("", kind, profile)
            case Kind.INFERENCE:
                return self.observation.at(profile, kind, "")
            case Kind.JOB | Kind.ROUTE:
                return self.observation.at(profile, kind, action.id)
        return self.observation.at(profile, kind, action.address.key)

    def stale(self, action: Action) -> str:
        """Why the row no longer stands for what is there, "" if it does.

        Of settings, inference and descriptions the fields that are written count: rows of one plan share their file.
        """
        thing = self.thing(action)
        if isinstance(thing, Unknown):
            return thing.reason
        what = f"{action.address.path} changed between plan and write"
        if action.address.kind in (Kind.JOB, Kind.FILE, Kind.KIT) or action.row is Row.DELETE:
            now = "" if isinstance(thing, Absent) else thing.fingerprint
            return what if now != action.fingerprint and not _template(action, thing) else ""
        if isinstance(thing, Absent) and action.id and action.address.kind is Kind.PROFILE:
            return what
        changes = [change for change in action.changes if action.row is not Row.UPDATE or change.writes]
        return what if any(not _as_seen(change, thing) for change in changes) else ""


def _as_seen(change: FieldChange, thing: Observed | Absent) -> bool:
    now = ABSENT if isinstance(thing, Absent) else thing.get(change.field)
    was = change.observed
    if isinstance(now, Unknown) or isinstance(was, Unknown):
        return False
    return same(now, was)


def _template(action: Action, thing: Observed | Absent) -> bool:
    """Whether it is a file that OpenClaw itself put there since the plan, with the agent."""
    return not action.fingerprint and isinstance(thing, Observed) and "text" in thing.defaults
