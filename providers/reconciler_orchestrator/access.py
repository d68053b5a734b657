"""Who may talk on a channel, and who are its admins: what of channels the orchestrator's door reaches, and only cold.

Access lives in Hermes's stores: lists in `.env`, approved pairings, admins in config.yaml. They are read here and
written by the package's own `access` verbs, one id at a time.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.action import CLEAR, Action
from reconciler.observe import Absent, Observed, Things, Unknown
from reconciler.place import Place
from reconciler.provider import Canon
from reconciler.values import members
from reconciler_shape import channels, configfile, dotenv, places, reach
from reconciler_shape.channels import Dialect, Store
from reconciler_shape.hiding import Hider
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json

_DIALECT = Dialect(references=True, in_block=True)
_REACHED = ("allow", "admins")
_SUFFIX = "-approved.json"
_LIMIT = 1 << 20
_VERBS = {"allow": ("revoke", "allow"), "admins": ("admin-remove", "admin-add")}


def read(place: Place, folder: str, profile: str, hider: Hider, wanted: Sequence[str], every: bool) -> Things | Unknown:
    """The wanted channels, with whether each is on, who may talk there and who are its admins."""
    try:
        raw = configfile.parse(_bytes(place, posixpath.join(folder, "config.yaml")) or b"", f"{folder}/config.yaml")
        lines = (_bytes(place, posixpath.join(folder, ".env")) or b"").decode("utf-8", "replace").splitlines()
        env = dict(entry for line in lines if (entry := dotenv.entry(line)))
        store = Store(raw, env, _paired(place, folder))
    except (configfile.NotReadable, ValueError) as error:
        return Unknown(str(error))
    except OSError as error:
        return Unknown(f"{folder}: {error.strerror or error}")
    found = reach.channels_of(profile, store, hider, _DIALECT, wanted, every)
    kept = {}
    for name, thing in found.items():
        fields = {key: value for key, value in thing.fields.items() if key in ("enabled", *_REACHED)}
        kept[name] = Observed(thing.kind, profile, name, fields, name=name, fingerprint=thing.fingerprint)
    return kept


def _bytes(place: Place, path: str) -> bytes | None:
    try:
        return place.read(place.resolve(path), _LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _paired(place: Place, folder: str) -> dict[str, list[str]]:
    found: dict[str, list[Mapping[str, Json]]] = {}
    for below in ("platforms/pairing", "pairing"):
        for name in places.visible(place, posixpath.join(folder, below)):
            if name.endswith(_SUFFIX):
                record = json.loads(_bytes(place, posixpath.join(folder, below, name)) or b"{}")
                if not isinstance(record, dict):
                    raise ValueError(f"{posixpath.join(folder, below, name)}: there is no map of ids in it")
                found.setdefault(name.removesuffix(_SUFFIX), []).append(record)
    return {platform: reach.paired(records) for platform, records in found.items()}


def canon(resource: Resource, seen: Observed | Absent | Unknown) -> Canon:
    """`enabled` has to be said of every channel; here it can only be what it is."""
    name, _, account = resource.address.key.partition("/")
    if account:
        return Canon({}, refused={"": f"the orchestrator has one account per channel: write {name}"})
    refused = {}
    for key, value in resource.fields.items():
        if key == "enabled":
            now = isinstance(seen, Observed) and seen.get("enabled") is True
            if value is not now and not isinstance(seen, Unknown):
                refused[key] = f"{name} is {'on' if now else 'off'}, and the orchestrator's door has no verb for that"
        elif key not in _REACHED:
            refused[key] = "the orchestrator's door reaches who may talk on a channel, and who are its admins"
        else:
            bad = [one for one in members(value) if channels.id_problem(one) or one.startswith("-")]
            if bad:
                refused[key] = f"{bad[0]!r} cannot be an id on its command line"
    return Canon({key: value for key, value in resource.fields.items() if key in _REACHED}, refused=refused)


def lines(action: Action) -> list[tuple[str, str]]:
    """The `access` verbs of a row and the ids that they are about; who loses access does so first."""
    less: list[tuple[str, str]] = []
    more: list[tuple[str, str]] = []
    for change in action.changes:
        if change.field not in _VERBS or not change.writes:
            continue
        take, give = _VERBS[change.field]
        now = _ids(change.observed)
        then = [] if change.write is CLEAR else _ids(change.write)
        less += [(take, one) for one in now if one not in then]
        more += [(give, one) for one in then if one not in now]
    return less + more


def _ids(value: Any) -> list[str]:
    return [str(one) for one in members(value)] if isinstance(value, list | dict) else []


def express(thing: Observed) -> dict[str, Json]:
    """Only where there is something to say that the door could carry."""
    said = {key: value for key, value in thing.fields.items() if not isinstance(value, Unknown)}
    return said if said.keys() & set(_REACHED) else {}
