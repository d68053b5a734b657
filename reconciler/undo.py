"""Undo: what a setup would have to declare for a run to be undone, from the journal. Pure.

It is one more desired state: the plan that comes of it is a plan like any other, with its drift, conflicts, tiers and
reviews. The setup itself is not changed, and goes on declaring what the run applied until somebody reverts it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from reconciler_specs.address import Address, Kind
from reconciler_specs.home import BY_KIND
from reconciler_specs.resource import Resource
from reconciler_specs.shape import Json, Shape
from reconciler_state.history import Done, Run
from reconciler_state.journal import FOUND
from reconciler_state.record import Owned
from reconciler_state.veil import is_text, unknown_here

from .action import Action, FieldRow, Hold, Row
from .bind import ABSENT_JSON
from .errors import UsageError
from .merge import shape_over
from .observe import ABSENT
from .provider import Canon
from .redact import has_hidden
from .values import from_base

# Rows that write to the home, and why they cannot be undone by a plan.
_NOT = {
    Row.PROVISION: "the home was made; a home is never deleted",
    Row.MISSING: "it was made again after it had gone from the home",
    Row.FOLLOW: "it changed a thing that this setup does not own",
}
_LET_GO = {Row.RELEASED, Row.FORGET}
# Rows after which nothing is to be put back: they changed state only, or restarted what runs.
_STATE = {Row.ADOPT, Row.MOVED, Row.RELEASED, Row.FORGET, Row.SETTLED, Row.RESTART}
# Outcomes after which something of a row may stand in the home. It is planned like the rest: what does not stand there
# is in sync with what was before.
_DONE = {"applied", "not-applied", "inert", "settled"}
_OPEN = {"", "uncertain"}
Later = dict[tuple[str, ...], str]
"""Which later run wrote a field, "" for the whole thing, by each of its marks."""


@dataclass(frozen=True, slots=True)
class Undo:
    """What of a home's run can be undone, by address path: fields to declare as they were (`fields`, a field that was
    not there as `{"$absent": true}`), things that it made (`made`) and things that it deleted (`deleted`, with their
    fields). `cannot` says of the others why not; `commit` is the setup's when it ran, `dirty` that it was not as
    committed; `ids` are the harness ids of what it wrote, "" where it told none; `cleared` is what it took all that was
    ours away of."""

    run: str = ""
    fields: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    deleted: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    cannot: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    dirty: bool = False
    cleared: frozenset[str] = frozenset()

    @property
    def paths(self) -> frozenset[str]:
        return frozenset({*self.fields, *self.made, *self.deleted})

    def standing(
        self,
        home: str,
        declared: Mapping[Address, Resource],
        owned: Mapping[str, Owned],
        moves: Sequence[tuple[Address, Address]] = (),
    ) -> Undo:
        """With what is `owned` by now, by path: what has another address since is undone there, and what is another
        thing, is not ours any more, or holds what nobody can write again, stays."""
        fields, made, cannot = dict[str, Mapping[str, Json]](), set[str](), dict(self.cannot)
        for source, target in (pair for pair in moves if pair[0].home == home):
            # What the very plan that undoes it gives another address.
            inside = [p for p in owned if p == source.path or p.startswith(f"{source.path}/")]
            owned = {(target.path + p[len(source.path) :] if p in inside else p): t for p, t in owned.items()}
        for path in [*self.fields, *self.made]:
            now = self._now(path, owned)
            if not now and path in self.cleared and path not in owned:
                now = path
            if not now:
                cannot[path] = "what it was written to is not ours under this address any more"
            elif path in self.fields:
                fields[now] = self.fields[path]
            else:
                made.add(now)
        for path in fields.keys() & owned.keys():
            if has_hidden(_applied(owned[path])) and Address.parse(f"{home}/{path}") not in declared:
                # Were it declared without its secret, that would be taken away.
                del fields[path]
                cannot[path] = "it has left the setup since, and has a secret whose value is kept nowhere"
        for path in made & owned.keys():
            if owned[path].origin == "adopted":
                made.remove(path)
                cannot[path] = "what is there now was not made by this run"
        return replace(self, fields=fields, made=frozenset(made), cannot=cannot)

    def _now(self, path: str, owned: Mapping[str, Owned]) -> str:
        """Where a thing that the run wrote is owned now, by its harness id; "" if it is not."""
        was = self.ids.get(path, "")
        if path in owned and owned[path].id == (was or owned[path].id):
            return path
        store = _store(path)
        return next((p for p, t in owned.items() if was and t.id == was and _store(p) == store), "")

    def resources(
        self, home: str, declared: Mapping[Address, Resource], owned: Mapping[str, Owned]
    ) -> dict[Address, Resource]:
        """`declared` without what the run made, and with what it took away, or what has left the setup since and is in
        `owned` (by path): that as it was applied last, so that no field of it is taken for one that left (L2)."""
        out = {a: r for a, r in declared.items() if a.path not in self.made}
        for path, fields in {**self.fields, **self.deleted}.items():
            address = Address.parse(f"{home}/{path}")
            if address in out:
                continue
            thing = owned.get(path)
            if thing is not None and unknown_here(thing):
                continue  # what was applied last is known to another runner only
            present = {n: v for n, v in {**_applied(thing), **fields}.items() if v != ABSENT_JSON}
            if present:
                needs = (
                    (Address(home, address.profile),) if address.profile and address.kind is not Kind.PROFILE else ()
                )
                shapes = {name: _shape(address.kind, name, value) for name, value in present.items()}
                protect = thing is not None and thing.protect
                out[address] = Resource(address, present, shapes, needs=needs, protect=protect)
        return out

    def canon(self, address: Address, canon: Canon) -> Canon:
        """`canon` with the fields as they were before the run."""
        fields = self.fields.get(address.path)
        if fields is None:
            return canon
        return replace(canon, fields={n: v for n, v in {**canon.fields, **fields}.items() if v != ABSENT_JSON})

    def only(self, actions: Sequence[Action]) -> tuple[list[Action], list[str]]:
        """Of a home's rows those that undo it, and notes on what they cannot."""
        gone = {a.address.path for a in actions if a.row is Row.DELETE} - self.made
        kept = [a for a in actions if a.address.path in self.paths - gone]
        said = f"made by run {self.run}"
        told = [replace(a, reason=said) if a.address.path in self.made and a.row is Row.DELETE else a for a in kept]
        why = "it has left the setup, and not all that was applied last is known to this runner"
        return told, [f"not undone: {path}: {why}" for path in sorted(gone & self.fields.keys())]

    def notes(self) -> list[str]:
        """For the plan's head."""
        if not (self.paths or self.cannot):
            return []
        # Reverting the commit of a setup that was changed since would take back what the run has not done.
        word, back = ("changed since commit", "change it back") if self.dirty else ("commit", "revert that")
        at = f" ({word} {self.commit[:12]})" if self.commit else ""
        first = f"undoes run {self.run}: the setup still declares what it applied{at}; {back} too"
        return [first, *(f"not undone: {path or 'the home'}: {why}" for path, why in sorted(self.cannot.items()))]


def _store(path: str) -> tuple[str, Kind]:
    address = Address.parse(f"-/{path}")
    return address.profile, address.kind


def undoing(hold: Hold | None, undo: str) -> Hold | None:
    """`hold` in a plan that undoes the run `undo`, if it does: what lifts it is an apply of that undo."""
    apply, words = "reconciler apply ", hold.command if hold else ""
    if not undo or hold is None or not words.startswith(apply):
        return hold
    return replace(hold, command=f"{apply}--undo {undo} {words.removeprefix(apply)}")


def _applied(thing: Owned | None) -> dict[str, Json]:
    """The fields of a thing as they were declared last, but for those that pausing wrote: they are given back."""
    if thing is None:
        return {}
    paused = thing.retired.was.keys() if thing.retired is not None else ()
    return {name: base.declared for name, base in thing.fields.items() if name not in paused}


def _shape(kind: Kind, name: str, value: Json) -> Shape:
    entry = BY_KIND[kind].get(name)
    if kind is Kind.SETTING or entry is None or entry.shape.free:
        return shape_over(from_base(value), ABSENT)
    return entry.shape


def of(runs: Sequence[Run], run: str, owners: Collection[str]) -> Undo:
    """What can be undone of the run `run` of the setup with the names `owners`, from all runs of a home, oldest first;
    an empty Undo if the home has no such run."""
    at = next((i for i, r in enumerate(runs) if r.run == run and r.owner in owners), None)
    if at is None:
        return Undo(run)
    later: Later = {}
    let_go: dict[str, str] = {}
    for other in runs[at + 1 :]:
        let_go |= {r.path: other.run for r in other.rows if r.row in _LET_GO and r.outcome == "applied"}
        for row in filter(_wrote, other.rows):
            for name in row.rows or [""]:
                later |= dict.fromkeys(_marks(row, name, ours=other.owner in owners), other.run)
    who = runs[at].who
    found = Undo(run, commit=str(who.get("commit", "")), dirty=bool(who.get("dirty")))
    for row in runs[at].rows:
        if _wrote(row) and row.path in let_go:
            found = replace(found, cannot={**found.cannot, row.path: f"run {let_go[row.path]} let go of it since"})
        elif _wrote(row):
            found = _with(found, row, later)
        elif row.outcome in _OPEN and row.row not in _STATE:
            why = "what came of it is not known yet: the next apply looks"
            found = replace(found, cannot={**found.cannot, row.path: why})
    return found


def _wrote(row: Done) -> bool:
    """Whether a row may have written to the home. One that only recorded something has no door and no field rows; of
    a create that was cut off, the run that settled it says whether there was anything."""
    if row.row in _STATE or row.outcome not in _DONE:
        return False
    if row.outcome == "settled" and row.row == Row.CREATE:
        return row.reason == FOUND
    return row.row != Row.UPDATE or bool(row.rows or row.door)


def _marks(row: Done, name: str, ours: bool = True) -> list[tuple[str, ...]]:
    """What a field of a thing is found by again: its address, if the run was ours, and what it is in the home."""
    address = Address.parse(f"-/{row.path}")
    known = [(address.profile, address.kind.value, row.id, name)] if row.id else []
    return [*known, (row.path, name)] if ours else [*known]


def _again(row: Done, name: str, later: Later) -> str:
    return next((later[mark] for mark in _marks(row, name) if mark in later), "")


def _with(undo: Undo, row: Done, later: Later) -> Undo:
    undo = replace(undo, ids={**undo.ids, row.path: row.id})
    why = _NOT.get(Row(row.row), "") if row.row in set(Row) else f"{row.row} is not known to this version"
    if not why and row.kind == Kind.SECRET.value:
        why = "a secret's earlier value is kept nowhere"
    again = _again(row, "", later)
    if not why and again:
        why = f"run {again} wrote it again; undo that one first"
    if why:
        return replace(undo, cannot={**undo.cannot, row.path: why})
    if row.row == Row.CREATE:
        marks = {mark[:-1] for mark in _marks(row, "")}
        touched = sorted({other for mark, other in later.items() if mark[:-1] in marks})
        if touched:
            return replace(undo, cannot={**undo.cannot, row.path: f"run {touched[0]} changed it since"})
        return replace(undo, made=undo.made | {row.path})
    fields, lost = {}, {}
    for name, value in row.before.items():
        if has_hidden(value):
            lost[name] = "a secret's earlier value is kept nowhere"
        elif _digested(value):
            lost[name] = "of a long text only the digest is kept (state: texts: digests)"
        elif other := _again(row, name, later):
            lost[name] = f"run {other} wrote it again; undo that one first"
        else:
            fields[name] = value
    cannot = {**undo.cannot, **{f"{row.path}#{name}": why for name, why in lost.items()}}
    if row.row == Row.DELETE:
        if lost or not fields:
            said = cannot.pop(f"{row.path}#{next(iter(lost))}", "") if lost else "what it was is not recorded"
            return replace(undo, cannot={**cannot, row.path: said})
        return replace(undo, deleted={**undo.deleted, row.path: fields}, cannot=cannot)
    missing = sorted(row.rows.keys() - row.before.keys())
    cannot |= {f"{row.path}#{name}": "its earlier value could not be read" for name in missing}
    # A thing whose every field was taken away is owned no more by that, and nobody's: it can be given back.
    gone = {row.path} if set(row.rows.values()) == {FieldRow.UNSET} else set()
    fields_by_path = {**undo.fields, row.path: fields} if fields else undo.fields
    return replace(undo, fields=fields_by_path, cannot=cannot, cleared=undo.cleared | gone)


def _digested(value: Json) -> bool:
    if isinstance(value, dict):
        return is_text(value) or any(_digested(v) for v in value.values())
    return isinstance(value, list) and any(_digested(v) for v in value)


def known(run: str, runs: Mapping[str, Sequence[str]], homes: Sequence[str]) -> None:
    """Raises UsageError unless `run` is one of `runs` (each with the homes that it wrote in) and was in one of `homes`;
    it says what is near."""
    if run not in runs:
        close = get_close_matches(run, runs, 1)
        hint = f"did you mean {close[0]}?" if close else "reconciler history"
        raise UsageError(f"--undo {run}: no run of this setup has this id", hint=hint)
    if not set(homes) & set(runs[run]):
        where = " ".join(runs[run])
        raise UsageError(f"--undo {run}: that run was in {where}", hint=f"reconciler plan {where} --undo {run}")
