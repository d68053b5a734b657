"""Secret: a secret's row, from what is declared, recorded and observed: digests and names, never a value. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.secret import KEEP, named_by
from reconciler_specs.shape import SCALAR, Json
from reconciler_state.record import Owned

from .action import Action, FieldRow
from .observe import Observed, Seen, Unknown
from .provider import Canon
from .redact import HIDDEN, is_hidden
from .values import from_base

UNCHECKED = "unchecked"
"""The option of a secret whose source was not, or could not be, looked at: why."""
SOURCE = "source"
ASKED = "asked"
"""The option that says whether such a source was asked all the same, and gave nothing."""
SAID = "said"
"""The option with the source in words."""


def words(source: Json, folder: str = "") -> str:
    """A source in words, for a plan and its digest: names and paths, never a value. A file in the setup's `folder` is
    said from there: a plan is read in one checkout and carried out in another."""
    if source == KEEP:
        return "kept in the home"
    [(way, said)] = source.items()
    if way == "command":
        return f"command {shlex.join(said)}"
    if way == "env":
        return f"env {said}"
    file = said["file"] if way == "dotenv" else said
    if folder and file.startswith(f"{folder}/"):
        file = file.removeprefix(f"{folder}/")
    return shlex.join(["dotenv", file, said["key"]] if way == "dotenv" else ["file", file])


def canon(resource: Resource, owned: Owned | None, observed: Seen) -> Canon:
    """A secret in canonical form, the same for every harness. Pure.

    What was not checked stands as it was when we last wrote it, so that a change behind our back still shows.
    """
    fields = dict(resource.fields)
    unchecked = str(resource.options.get(UNCHECKED, ""))
    base = owned.fields.get("value") if owned else None
    if unchecked and base is not None:
        fields["value"] = from_base(base.declared)
    missing = not isinstance(observed, Observed) and not isinstance(observed, Unknown)
    held = ""
    if missing and resource.options.get(SOURCE) == KEEP:
        held = f"the home has no {resource.address.key}: put it where the home keeps its secrets, or name its source"
    elif missing and unchecked and resource.options.get(ASKED):
        held = f"the home has no {resource.address.key}, and {unchecked}"
    return Canon(fields, dict.fromkeys(fields, SCALAR), held=held)


def standing(action: Action, resource: Resource | None, there: bool) -> str:
    """How a secret stands, in words: present or absent, and whether it is what its source gives. Pure."""
    rows = {c.row for c in action.changes}
    if not there:
        return "absent"
    if resource is None:
        return "present, and left the setup"
    if rows & {FieldRow.DRIFT, FieldRow.CONFLICT, FieldRow.RESTORE}:
        return "present, changed in the home since the last apply"
    if UNCHECKED in resource.options:
        return f"present, ? not checked here: {resource.options[UNCHECKED]}"
    if resource.options.get(SOURCE) == KEEP:
        return "present"
    other = rows & {FieldRow.SET, FieldRow.CLAIM}
    return "present, other than its source" if other else "present, the same as its source"


MANY = 20  # former values that are remembered of a secret


def with_former(owned: Owned, action: Action) -> Owned:
    """`owned` with the digest of the value that a secret's row replaces: by it old copies are found (L5). Pure."""
    change = next((c for c in action.changes if c.field == "value" and c.writes), None)
    if not action.source or change is None or not is_hidden(change.observed):
        return owned
    former = [digest for digest in owned.found.get("value", ()) if digest != change.observed[HIDDEN]]
    return replace(owned, found={**owned.found, "value": (*former, change.observed[HIDDEN])[-MANY:]})


def digests(owned: Mapping[str, Owned]) -> tuple[dict[str, str], dict[str, str]]:
    """The digests of what the home keeps now, and of what it kept before, each with the secret's name. Pure."""
    now: dict[str, str] = {}
    before: dict[str, str] = {}
    for path, thing in owned.items():
        address = Address.parse(f"-/{path}")
        if address.kind is not Kind.SECRET:
            continue
        before |= dict.fromkeys((str(digest) for digest in thing.found.get("value", ())), address.key)
        base = thing.fields.get("value")
        if base is not None and is_hidden(base.observed):
            now[base.observed[HIDDEN]] = address.key
    return now, {digest: name for digest, name in before.items() if digest not in now}


def kept(action: Action, resource: Resource | None, resources: Iterable[Resource]) -> Action:
    """A secret's row, so that only a value that we brought and that nothing names any more is taken away: what is
    `keep` now, or was all along, is let go of. A name without a source is `keep`. Pure."""
    gone = {c.field for c in action.changes if c.row is FieldRow.UNSET}
    named = resource is not None or any(action.address.key in named_by(other) for other in resources)
    if not gone or ("value" in gone and not named):
        return action
    changes = (replace(c, row=FieldRow.RELEASE, write=None) if c.row is FieldRow.UNSET else c for c in action.changes)
    return replace(action, changes=tuple(changes))


def clears(action: Action) -> bool:
    """Whether a row takes a secret's value away. Pure."""
    return action.address.kind is Kind.SECRET and any(
        c.field == "value" and c.row is FieldRow.UNSET for c in action.changes
    )


def after_namers(rows: Iterable[Action], owned: Mapping[str, Owned]) -> list[Action]:
    """The rows, a secret's clearing after all those whose thing has named it so far (`owned`, by path): where one of
    them is not carried out, the secret stays. Pure."""
    rows = list(rows)
    if not any(clears(row) for row in rows):
        return rows
    acting = [row for row in rows if row.address.path in owned and row.address.kind is not Kind.SECRET]
    return [
        replace(row, needs=(*row.needs, *(a.address for a in acting if _names(owned[a.address.path], row.address.key))))
        if clears(row)
        else row
        for row in rows
    ]


def _names(thing: Owned, name: str) -> bool:
    return any(_holds(base.declared, name) for base in thing.fields.values())


def _holds(value: Json, name: str) -> bool:
    """Whether a declared value names the secret, as harnesses write names: bare, or as a reference in a text."""
    if isinstance(value, str):
        return value == name or f"${{{name}}}" in value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(item, name) for item in inner)
