"""Rows: the presence table of the laws, one Action per Triple. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind
from reconciler_specs.home import BY_KIND
from reconciler_specs.resource import Mode, Resource
from reconciler_specs.shape import Class, Json, Shape
from reconciler_state.record import Base, Owned

from .action import Action, FieldChange, FieldRow, Hold, Row
from .bind import shape_in
from .fields import decide
from .match import Identity, Triple, identity, place_id
from .merge import clashes, shape_over
from .observe import ABSENT, Absent, Observation, Observed, Unknown
from .plan import content
from .provider import Canon, KindTraits, traits_of
from .retire import Grace, retiring, returning
from .values import from_base, members, same


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rows of one home are decided by, besides the three sides.

    `restores(address, field)` says whether the command line named it with --restore. `others` are the other
    setups' owned sets on this home, and `theirs` the same by what each thing is. `mine` are the (profile, kind, id)
    that this setup owns. `grace` is how long what left the setup is kept, None if it is not.
    """

    owner: str
    on_missing: str
    traits: Mapping[Kind, KindTraits]
    observation: Observation
    others: Mapping[str, Mapping[str, Owned]]
    theirs: Mapping[Identity, Mapping[str, Owned]]
    mine: frozenset[Identity]
    restores: Callable[[Address, str], bool]
    grace: Grace | None = None


def row(triple: Triple, canon: Canon | None, rules: Rules) -> Action:
    """The row of one address. `canon` is the resource's, None for what is no longer declared."""
    address, owned, observed = triple.address, triple.owned, triple.observed
    traits = traits_of(rules.traits, address.kind)
    stands = traits.stands(place_id(address)) or _is_part(traits, canon, owned) or _is_default(canon, owned, observed)
    if canon is not None and canon.refused:
        # Before anything is said of the home: no home of this harness could keep it.
        why = "; ".join(f"{name}: {reason}" if name else reason for name, reason in canon.refused.items())
        return Action(Row.REFUSED, address, reason=why, hold=Hold(why))
    if isinstance(observed, Unknown):
        return Action(Row.BLOCKED, address, reason=observed.reason, hold=Hold(observed.reason))
    if triple.desired is None or canon is None:
        return _undeclared(triple, stands, rules)
    if owned is not None and isinstance(observed, Observed) and not traits.by_place and _reused(owned, observed):
        why = f"id {owned.id} is now another object"
        return Action(Row.REPLACED, address, owned.id, reason=why, hold=_replaced(address, observed, why))
    if owned is not None and (stands or isinstance(observed, Observed)):
        return _foreign_fields(triple, canon, rules) or _fields(triple, canon, rules)
    if owned is None and (stands or isinstance(observed, Observed)):
        if stands:
            return _foreign_fields(triple, canon, rules) or _fields(triple, canon, rules)
        if isinstance(observed, Observed) and all(triple.desired.mode(n) is Mode.SEED for n in canon.fields):
            return Action(Row.IN_SYNC, address, observed.id)  # a seed that is there already has done its work
        return _unowned(triple)
    if owned is not None:
        return _gone(triple, canon, rules)
    return _new(triple, canon)


def _is_part(traits: KindTraits, canon: Canon | None, owned: Owned | None) -> bool:
    """Whether only a part of the thing is declared (or was): then the thing itself is nobody's to make or delete."""
    return bool(traits.parts & set(canon.fields if canon is not None else owned.fields if owned else ()))


def _is_default(canon: Canon | None, owned: Owned | None, observed: Observed | Absent | Unknown) -> bool:
    """Whether what is there is only what the harness put there by itself: nobody's, and no twin to fear."""
    if canon is None or owned is not None or not isinstance(observed, Observed) or not canon.fields:
        return False
    return all(name in observed.defaults for name in canon.fields)


def _new(triple: Triple, canon: Canon) -> Action:
    address, found = triple.address, triple.namesakes
    if triple.foreign:
        why = f"setup {triple.foreign!r} owns {found[0].id}" if found else f"setup {triple.foreign!r} owns it"
        return Action(Row.FOREIGN, address, reason=why, hold=Hold(why))
    if len(found) > 1:
        ids = ", ".join(t.id for t in found)
        hold = Hold(f"{len(found)} things have this name: {ids}", f"reconciler adopt --map {address}={found[0].id}")
        return Action(Row.AMBIGUOUS, address, reason=hold.why, hold=hold)
    if found:
        return _unowned(triple)
    if canon.expired:
        return Action(Row.EXPIRED, address, reason=canon.expired)
    return _create(Row.CREATE, triple, canon, reason="not in the home")


def _unowned(triple: Triple) -> Action:
    address = triple.address
    found = triple.observed if isinstance(triple.observed, Observed) else triple.namesakes[0]
    if triple.foreign:
        why = f"setup {triple.foreign!r} owns {found.id or address.path}"
        return Action(Row.FOREIGN, address, found.id, reason=why, hold=Hold(why))
    # E13: our marker on what this state does not know means that another state folder knows it.
    why = (
        "made by a reconciler that keeps its state elsewhere"
        if found.marker
        else "already in the home, and not ours yet"
    )
    hold = Hold(why, f"reconciler adopt {address}")
    return Action(Row.UNOWNED, address, found.id, reason=why, hold=hold, fingerprint=found.fingerprint)


def _create(kind: Row, triple: Triple, canon: Canon, reason: str) -> Action:
    assert triple.desired is not None
    keeps = triple.desired.options.get("keeps")
    if keeps:
        why = f"{', '.join(keeps)}: keep is for what is there already; say what it is to be"
        return Action(Row.REFUSED, triple.address, reason=why, hold=Hold(why))
    changes = tuple(
        FieldChange(name, FieldRow.SET, value, ABSENT, None, shape_in(canon, triple.desired, name), write=value)
        for name, value in canon.fields.items()
    )
    return Action(
        kind,
        triple.address,
        changes=changes,
        reason=reason,
        needs=(*triple.desired.needs, *canon.needs),
        notes=canon.notes,
        hold=Hold(canon.held) if canon.held else None,
        origin="created",
        protect=triple.desired.protect,
        carries=triple.desired.options,
    )


def _gone(triple: Triple, canon: Canon, rules: Rules) -> Action:
    """D and B, and O absent."""
    address, owned = triple.address, triple.owned
    assert owned is not None
    ended = rules.observation.ended.get((address.profile, address.kind), {}).get(owned.id)
    if canon.expired or ended:
        return Action(Row.SPENT, address, owned.id, reason=ended or canon.expired)
    if triple.namesakes:
        why = f"{owned.id} is gone, and {', '.join(t.id for t in triple.namesakes)} has its name"
        if triple.foreign:
            why = f"{why}, which setup {triple.foreign!r} owns"
            return Action(Row.FOREIGN, address, owned.id, reason=why, hold=Hold(why, f"reconciler release {address}"))
        return Action(Row.REPLACED, address, owned.id, reason=why, hold=_replaced(address, triple.namesakes[0], why))
    if rules.on_missing == "forget":
        return Action(Row.FORGET, address, owned.id, reason="gone from the home (on_missing: forget)")
    again = _create(Row.MISSING, triple, canon, reason="gone from the home; make it again")
    if rules.on_missing == "hold" and not rules.restores(address, ""):
        hold = Hold("gone from the home (on_missing: hold)", f"reconciler apply --restore {address}")
        return Action(Row.MISSING, address, reason=hold.why, hold=hold, changes=again.changes)
    return again


def _replaced(address: Address, found: Observed, why: str) -> Hold:
    return Hold(why, f"reconciler adopt --map {address}={found.id}")


def _reused(owned: Owned, observed: Observed) -> bool:
    """E10: whether the id now belongs to another object: of three or more bases, none is left as we knew it."""
    known = [(n, b) for n, b in owned.fields.items() if b.observed != {"$absent": True}]
    return len(known) >= 3 and not any(same(observed.get(n), b.observed) for n, b in known)


def _undeclared(triple: Triple, stands: bool, rules: Rules) -> Action:
    address, owned, observed = triple.address, triple.owned, triple.observed
    assert owned is not None
    if stands:
        return _let_go(triple, rules)
    if not isinstance(observed, Observed):
        ended = rules.observation.ended.get((address.profile, address.kind), {}).get(owned.id)
        return Action(Row.FORGET, address, owned.id, reason=ended or "left the setup, and is gone from the home")
    traits = traits_of(rules.traits, address.kind)
    if not traits.by_place and _reused(owned, observed):
        why = f"left the setup; its id {owned.id} is now another object, which is not ours"
        return Action(Row.FORGET, address, owned.id, reason=why)
    why = "left the setup" + ("" if owned.origin == "created" else "; not made by us")
    hold = None
    if owned.protect:
        hold = Hold("protected (protect: true)", f"reconciler release {address}")
    elif address.kind is Kind.PROFILE:
        holds = _not_ours(address, observed, rules)
        if holds:
            hold = Hold(f"holds what we do not own: {', '.join(holds)}", f"reconciler release {address}")
    gone = Action(
        Row.DELETE,
        address,
        owned.id,
        reason=why,
        hold=hold,
        fingerprint=observed.fingerprint,
        content=content(observed),
        notes=_edited(owned, observed),
        origin=owned.origin,
        needs=tuple(Address.parse(f"{address.home}/{n}") for n in owned.needs),
    )
    return retiring(gone, owned, observed, rules.grace)


def _edited(owned: Owned, observed: Observed) -> tuple[str, ...]:
    """For a delete: what somebody made of the thing since, which goes with it."""
    names = [n for n, b in owned.fields.items() if not same(observed.get(n), from_base(b.observed))]
    return (f"changed in the home since the last apply: {', '.join(sorted(names))}",) if names else ()


def _not_ours(profile: Address, observed: Observed, rules: Rules) -> list[str]:
    """What keeps a profile from being deleted: its things that this setup does not own."""
    found = []
    for thing in rules.observation.all():
        key = (thing.profile, thing.kind, thing.id)
        if thing.profile == profile.profile and thing.kind is Kind.JOB and key not in rules.mine:
            found.append(f"job {thing.name or thing.id}")
    for owner, things in rules.others.items():
        inside = (Address.parse(f"-/{path}") for path in things)
        found += [f"{a.path} of setup {owner}" for a in inside if a.profile == profile.profile]
    # A file by its path, another kind by its word and its id.
    mine = {i if k is Kind.FILE else f"{k}/{i}" for p, k, i in rules.mine if p == profile.profile}
    skills = {i for p, k, i in rules.mine if p == profile.profile and k is Kind.SKILL}
    holds = [str(name) for name in observed.about.get("holds", ())]
    found += [name for name in holds if name not in mine and not skills & set(name.split("/")[:-1])]
    return found[:8] + ([f"{len(found) - 8} more"] if len(found) > 8 else [])


def _let_go(triple: Triple, rules: Rules) -> Action:
    """A place that always exists left the setup: each of its fields is unset or released (field table, row 2)."""
    owned, address = triple.owned, triple.address
    assert owned is not None
    changes = []
    for name, base in owned.fields.items():
        shared = any(name in t.fields for t in _theirs(triple, rules).values())
        observed = triple.observed.get(name) if isinstance(triple.observed, Observed) else ABSENT
        change = decide(
            name,
            _shape(address, Canon({}), None, name, base),
            ABSENT,
            base,
            observed,
            created=owned.has_made(name) and not shared,
        )
        if change.row is FieldRow.UNSET and owned.protect:
            hold = Hold("protected (protect: true)", f"reconciler release {address}")
            return Action(Row.UPDATE, address, owned.id, changes=(change,), reason="left the setup", hold=hold)
        changes.append(change)
    fingerprint = triple.observed.fingerprint if isinstance(triple.observed, Observed) else ""
    if not changes:
        return Action(Row.FORGET, address, owned.id, reason="left the setup")
    return Action(
        Row.UPDATE, address, owned.id, tuple(changes), "left the setup", fingerprint=fingerprint, origin=owned.origin
    )


def _shape(address: Address, canon: Canon, resource: Resource | None, name: str, base: Base | None) -> Shape:
    """A field's value class, also of one that left the setup; a free one's (a setting's) comes from its values, both
    of them, so that taking a key away leaves what was never declared below it (L2)."""
    entry = BY_KIND[address.kind].get(name)
    if address.kind is Kind.SETTING or (entry is not None and entry.shape.free and name not in canon.shapes):
        return shape_over(canon.fields.get(name, ABSENT), from_base(base.declared) if base else ABSENT)
    if name in canon.shapes or (resource is not None and name in resource.shapes):
        return shape_in(canon, resource, name)
    return entry.shape if entry is not None else Shape()


def _theirs(triple: Triple, rules: Rules) -> Mapping[str, Owned]:
    """What other setups own of this very thing, by setup (L3)."""
    harness_id = triple.owned.id if triple.owned is not None else ""
    return rules.theirs.get(identity(triple.address, harness_id, rules.traits), {})


def _foreign_fields(triple: Triple, canon: Canon, rules: Rules) -> Action | None:
    """L3: two setups may declare one place with equal values; with different ones neither writes."""
    for owner, thing in _theirs(triple, rules).items():
        for name, value in canon.fields.items():
            base = thing.fields.get(name)
            shape = _shape(triple.address, canon, triple.desired, name, base)
            if base is not None and clashes(shape, value, from_base(base.declared)):
                why = f"setups {owner!r} and {rules.owner!r} declare different values of {name}"
                return Action(Row.FOREIGN, triple.address, reason=why, hold=Hold(why))
    return None


def _fields(triple: Triple, canon: Canon, rules: Rules) -> Action:
    """D and O, with or without B: the field table."""
    resource, owned, address = triple.desired, triple.owned, triple.address
    assert resource is not None
    observed = triple.observed if isinstance(triple.observed, Observed) else None
    created = owned is not None and owned.origin == "created"
    bases = owned.fields if owned else {}
    names = [*canon.fields, *(n for n in bases if n not in canon.fields and n not in resource.unset)]
    changes = []
    for name in [*names, *sorted(resource.unset)]:
        want, base = returning(owned, name, canon.fields.get(name, ABSENT))
        seen = observed.get(name) if observed else ABSENT
        if base is not None and same(want, base.declared) and same(seen, base.observed):
            continue  # at rest on both sides: in sync whatever its shape and mode, and nearly every field is
        others = tuple(t.fields[name].declared for t in _theirs(triple, rules).values() if name in t.fields)
        change = decide(
            name,
            _shape(address, canon, resource, name, base),
            want,
            base,
            seen,
            mode=resource.mode(name),
            created=owned is not None and owned.has_made(name) and (created or not others),
            default=observed is not None and name in observed.defaults,
            restore=rules.restores(address, name),
            unset=name in resource.unset,
            others=others,
        )
        if change.row is not FieldRow.IN_SYNC:
            changes.append(_removing_found(change, owned))
    fingerprint = observed.fingerprint if observed else ""
    harness_id = owned.id if owned else place_id(address)
    parts = traits_of(rules.traits, address.kind).parts & set(canon.fields)
    found = observed is not None and (not parts or any(observed.get(p) is not ABSENT for p in parts))
    origin = owned.origin if owned else ("adopted" if found else "created")
    kept = owned is not None and (owned.protect != resource.protect or owned.retired is not None)
    if not changes and not kept:
        return Action(Row.IN_SYNC, address, harness_id, fingerprint=fingerprint)
    action = Action(
        Row.UPDATE,
        address,
        harness_id,
        tuple(changes),
        needs=(*resource.needs, *canon.needs),
        fingerprint=fingerprint,
        notes=canon.notes,
        origin=origin,
        protect=resource.protect,
        kept=kept,
        reason="back in the setup" if owned is not None and owned.retired is not None else "",
        carries=resource.options,
    )
    who = observed.about.get("changed_by") if observed else None
    if who and any(c.row in (FieldRow.DRIFT, FieldRow.CONFLICT) for c in changes):
        action = replace(action, notes=(*action.notes, str(who)))
    writes = any(c.writes for c in changes)
    if canon.held and writes:
        return Action(Row.UPDATE, address, harness_id, tuple(changes), canon.held, Hold(canon.held), origin=origin)
    return action


def _removing_found(change: FieldChange, owned: Owned | None) -> FieldChange:
    """Marks a set whose write takes away a member that adopt found there: that needs a person (laws)."""
    found = owned.found.get(change.field, ()) if owned else ()
    if change.shape.cls is not Class.SET or not change.writes or not found:
        return change
    kept = members(change.write)
    gone: list[Json] = [m for m in members(change.observed) if m not in kept and m in found]
    if not gone:
        return change
    return replace(change, removes_found=True)


def watched(action: Action) -> bool:
    """Whether all that an action has to say is drift that the author only wants to hear of."""
    return bool(action.changes) and all(c.row is FieldRow.DRIFT and c.mode is Mode.WATCH for c in action.changes)
