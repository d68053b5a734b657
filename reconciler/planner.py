"""The planner: three sides in, a home's rows out, in the order in which apply takes them. Pure; no I/O (L8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reconciler_specs.address import Address, Kind, selects, split_field
from reconciler_state.record import HomeState, Owned

from . import contact as contacts
from . import restart, secret
from .action import Action, Fact, Hold, Row
from .bind import references
from .contact import Contact
from .fights import stopped
from .freeze import froze
from .gate import rule
from .graph import order
from .guards import Lost, lifted, limited, lost_stores, restarts
from .match import Triple, identity, match, remembered, sharing
from .notes import notes
from .observe import Observation, Observed, Unknown
from .plan import HomeInputs, HomePlan, Options
from .provider import Canon, KindTraits, Provider, traits_of
from .retire import Grace, along
from .rows import Rules, row
from .undo import undoing
from .users import after_users
from .versions import outside

# Rows after which the thing exists or goes on existing, so that others may stand on it though it is held.
_STANDING = frozenset({Row.UPDATE, Row.IN_SYNC, Row.UNOWNED, Row.FOREIGN, Row.DELETE, Row.SPENT})


def plan_home(inputs: HomeInputs, provider: Provider, options: Options) -> HomePlan:
    """One home's plan. Raises nothing: what stands against planning is in `failed` or `hold`."""
    ref, observation = inputs.ref, inputs.observation
    stored = inputs.state
    base = HomePlan(
        ref,
        inputs.owner,
        state=stored or HomeState(ref.place.name, ref.harness, ref.path),
        lineage=stored.lineage if stored else "",
        serial=stored.serial if stored else 0,
        intents=tuple(inputs.intents),
    )
    if isinstance(observation, Unknown):
        return replace(base, failed=observation.reason)
    contact = Contact(base.state)
    provisioning = False
    if not observation.exists:
        if contacts.known(contact.state, inputs.owner) and contact.state.owned(inputs.owner):
            if "rebuild" not in options.allow:
                gone = Hold(
                    "the home is gone: nothing is at its path, and we own things in it",
                    f"reconciler apply {ref.id} --allow rebuild",
                )
                return replace(base, hold=gone, guard="rebuild")
        elif inputs.first_contact != "provision" and ref.id not in options.provision:
            return replace(base, hold=Hold("there is no home at its path", f"reconciler provision {ref.id}"))
        observation = provider.blank(ref, {a.profile for a in inputs.resources if a.profile})
        provisioning = True
    elif ref.id in options.provision and not any(i.row == Row.PROVISION.value for i in inputs.intents):
        # E48: what is already there is never provisioned over.
        return replace(base, hold=Hold("there is a home already", f"reconciler adopt {ref.id}"))
    observation = provider.prepare(inputs.resources, observation)
    base = replace(base, version=observation.version, observation=observation, resources=inputs.resources)

    rebuilding = provisioning and bool(base.state.owned(inputs.owner))
    contact = _meet(inputs, provider, observation, contact, provisioning)
    state = contact.state
    observation = remembered(observation, state, provider.traits)
    base = replace(base, observation=observation)
    canons = _canons(inputs, provider, observation, state)
    lost = [] if provisioning else lost_stores(ref.id, state.owned(inputs.owner), observation, provider.traits)
    # What is made again is made as declared: there is nobody's edit in it to be held for.
    again = [ref.id] if rebuilding else [str(Address(ref.id, s.profile, s.kind)) for s in _rebuilt(lost, options)]
    actions = along(_rows(inputs, provider, (*options.restore, *again), observation, state, canons))
    actions = stopped(actions, inputs.restored, restores((*options.restore, *again)))
    actions = [replace(a, rebuilt=True) if any(selects(t, a.address) for t in again) else a for a in actions]
    actions = lifted(provider.review(actions, observation, inputs.resources), options.allow)
    head = [a for a in contact.actions if a.row in (Row.PROVISION, Row.ADOPT)]
    if head:
        actions = [replace(a, needs=(*a.needs, head[0].address)) for a in actions]
    actions = [*contact.actions, *actions]
    actions = [_ruled(a, provider, observation, inputs, options, canons) for a in actions]
    actions = limited(actions, state.owned(inputs.owner), ref.id, inputs.policy.limits, options)
    actions = [froze(a, inputs.policy.windows, inputs.now) for a in actions]
    actions = after_users(_waiting(actions), state.owned(inputs.owner), observation, provider.traits)
    actions = _waiting(actions)  # also for what is held since
    actions = _emptied(actions, state.owned(inputs.owner), ref.id)
    chosen, left_out = _chosen(actions, options.targets)
    if options.unmanaged:
        declared = {a.address for a in actions}
        chosen += [a for a in _unmanaged(ref.id, observation, state) if a.address not in declared]
    unchanged = sum(1 for a in chosen if a.row is Row.IN_SYNC)
    undone, not_undone = inputs.undo.only(chosen) if options.undo else (chosen, [])
    kept = {a.address for a in undone}
    left_out += sum(1 for a in chosen if a.row is not Row.IN_SYNC and a.address not in kept)
    restarting, said = restart.planned(inputs, undone, observation, state, options)
    hold, guard = _home_hold(inputs, provider, options, observation, contact, provisioning, lost)
    shown = [a for a in [*undone, *restarting] if options.in_sync or a.row is not Row.IN_SYNC]
    if options.undo:
        shown = [replace(a, hold=undoing(a.hold, options.undo)) for a in shown]
    return replace(
        base,
        actions=tuple(order(shown)),
        state=state,
        hold=undoing(hold, options.undo),
        guard=guard,
        notes=(*observation.notes, *contact.notes, *said, *not_undone, *notes(inputs, observation, canons)),
        unchanged=unchanged,
        left_out=left_out,
        canons=canons,
    )


def _meet(
    inputs: HomeInputs, provider: Provider, observation: Observation, contact: Contact, provisioning: bool
) -> Contact:
    """First contact and what re-keys state, in the order in which each stands on the one before."""
    home, owner = inputs.ref.id, inputs.owner
    contact = contacts.renamed(contact, home, owner, inputs.formerly)
    contact = contacts.moved(contact, home, owner, inputs.moved, observation, provider.traits)
    contact = contacts.settled(
        contact,
        owner,
        home,
        inputs.intents,
        inputs.resources,
        observation,
        lambda resource, resolve: provider.canon(resource, observation, resolve),
    )
    contact = contacts.released(contact, owner, home, inputs.released)
    if provisioning:
        state = replace(contact.state, labels={**contact.state.labels, owner: home})
        for owned_path, thing in provision_owns(observation, provider).items():
            state = state.with_owned(owner, owned_path, thing)
        action = Action(Row.PROVISION, Address(home), reason="there is no home at its path: make one", origin="created")
        return contact.then(state, action)
    if not contacts.known(contact.state, owner) and inputs.first_contact == "adopt":
        return contacts.adopted(contact, owner, home, inputs.resources, observation, provider)
    return contact


def provision_owns(observation: Observation, provider: Provider) -> dict[str, Owned]:
    """What a home made by us contains, owned as `created` (laws, “provision ends by owning”)."""
    owned = {}
    for thing in observation.all():
        kind = thing.kind
        address = Address(
            "-", thing.id if kind is Kind.PROFILE else thing.profile, kind, "" if kind is Kind.PROFILE else thing.id
        )
        if not traits_of(provider.traits, kind).stands(thing.id):
            owned[address.path] = Owned(thing.id, "created")
    return owned


def _canons(inputs: HomeInputs, provider: Provider, observation: Observation, state: HomeState) -> dict[Address, Canon]:
    resolve = contacts.resolver(state, inputs.owner)
    owned = state.owned(inputs.owner)
    canons = {}
    for address, resource in inputs.resources.items():
        if address.kind is Kind.SECRET and Kind.SECRET in provider.traits:
            seen = observation.at(address.profile, Kind.SECRET, address.key)
            canons[address] = secret.canon(resource, owned.get(address.path), seen)
        else:
            canons[address] = inputs.undo.canon(address, provider.canon(resource, observation, resolve))
    return canons


def _rows(
    inputs: HomeInputs,
    provider: Provider,
    restore: Sequence[str],
    observation: Observation,
    state: HomeState,
    canons: Mapping[Address, Canon],
) -> list[Action]:
    owner, home = inputs.owner, inputs.ref.id
    owned = state.owned(owner)
    others = {o: things for o, things in state.owners.items() if o != owner}
    addresses = {path: Address.parse(f"{home}/{path}") for path in owned}
    rules = Rules(
        owner=owner,
        on_missing=inputs.policy.on_missing or "recreate",
        traits=provider.traits,
        observation=observation,
        others=others,
        theirs=sharing(others, provider.traits),
        mine=frozenset(identity(addresses[p], t.id, provider.traits) for p, t in owned.items()),
        restores=restores(restore),
        grace=Grace(inputs.now, inputs.policy.grace or 0) if inputs.policy.on_removed == "pause" else None,
    )
    triples = match(home, inputs.resources, owned, others, observation, provider.traits)
    rows = [row(triple, canons.get(triple.address), rules) for triple in triples]
    rows = secret.after_namers((_sourced(action, inputs, observation) for action in rows), owned)
    return _renames(rows, triples, canons, provider.traits)


def _sourced(action: Action, inputs: HomeInputs, observation: Observation) -> Action:
    """A secret's row with how it stands, and where its value comes from."""
    address = action.address
    if address.kind is not Kind.SECRET or action.row in (Row.REFUSED, Row.BLOCKED):
        return action
    resource = inputs.resources.get(address)
    there = isinstance(observation.at(address.profile, Kind.SECRET, address.key), Observed)
    source = str(resource.options[secret.SAID]) if resource else "left the setup"
    action = secret.kept(action, resource, inputs.resources.values())
    facts = action.facts | {Fact.NEW_CREDENTIAL} if action.writes else action.facts
    return replace(action, source=source, facts=facts, reason=secret.standing(action, resource, there))


def restores(targets: Sequence[str]) -> Callable[[Address, str], bool]:
    """Whether --restore names a field: (address, field) → bool, "" for the thing as a whole."""

    def named(address: Address, name: str) -> bool:
        for target in targets:
            wanted = split_field(target)[1]
            if selects(target, address) and (wanted is None or not name or wanted == name):
                return True
        return False

    return named


def _ruled(
    action: Action,
    provider: Provider,
    observation: Observation,
    inputs: HomeInputs,
    options: Options,
    canons: Mapping[Address, Canon],
) -> Action:
    if action.writes:
        canon = canons.get(action.address)
        facts = action.facts | provider.facts(action, canon.fields if canon else {}, observation)
        action = restarts(replace(action, facts=facts), inputs.restart, options.allow)
    tier, why = rule(action, inputs.policy.raise_)
    return action if (tier, why) == (action.tier, action.rule) else replace(action, tier=tier, rule=why)


def _renames(
    rows: list[Action], triples: Sequence[Triple], canons: Mapping[Address, Canon], traits: Mapping[Kind, KindTraits]
) -> list[Action]:
    """E8: a delete and a create of the same content look like a rename; the plan says how to write it down. What is
    known by its place is another thing at another place."""
    bases = {
        t.address: {n: b.declared for n, b in t.owned.fields.items() if n != "name"}
        for t, r in zip(triples, rows, strict=True)
        if (r.row is Row.DELETE or r.retires) and t.owned is not None and not traits_of(traits, t.address.kind).by_place
    }
    if not bases:
        return rows
    noted = []
    for action in rows:
        if action.row is Row.CREATE:
            fields = {n: v for n, v in canons[action.address].fields.items() if n != "name"}
            for old, base in bases.items():
                if base and base == fields and (old.kind, old.profile) == (action.address.kind, action.address.profile):
                    hint = f"looks like a rename: add `moved: [{{from: {old}, to: {action.address}}}]`"
                    action = replace(action, notes=(*action.notes, hint))
        noted.append(action)
    return noted


def _waiting(actions: Sequence[Action]) -> list[Action]:
    """Holds rows whose needs cannot come to be in this run, and says what they wait for."""
    actions = _referring(actions)
    missing = {a.address: a for a in actions if a.hold is not None and not _stands(a)}
    still = {a.address for a in actions if a.hold is not None}
    waiting = list(actions)
    changed = bool(still)
    while changed:
        changed = False
        for index, action in enumerate(waiting):
            if action.hold is not None or not (action.writes or action.records):
                continue
            # What is held goes on naming the secret, though others may stand on it.
            first = next((n for n in action.needs if n in (still if secret.clears(action) else missing)), None)
            if first is None or action.row in (Row.DELETE, Row.FORGET):
                continue
            held = replace(action, hold=Hold(f"waits for {first}, which is held", ""))
            waiting[index] = held
            if action.row not in _STANDING:
                missing[action.address] = held
            changed = True
    return waiting


def _emptied(actions: Sequence[Action], owned: Mapping[str, Owned], home: str) -> list[Action]:
    """Holds the delete of a profile while something of ours in it is not deleted with it: what is protected, guarded
    or held there would go all the same."""
    rows = {a.address: a for a in actions}
    checked = []
    for action in actions:
        if action.row is Row.DELETE and action.address.kind is Kind.PROFILE and action.hold is None:
            inside = [Address.parse(f"{home}/{path}") for path in owned]
            inside = [a for a in inside if a.profile == action.address.profile and a != action.address]
            kept = [str(a) for a in inside if a in rows and rows[a].hold is not None]
            if kept:
                action = replace(action, hold=Hold(f"holds what is not deleted: {', '.join(sorted(kept))}"))
        checked.append(action)
    return checked


def _stands(action: Action) -> bool:
    """Whether a held row's thing is there all the same, so that others may stand on it. What was never written yet
    (an inference whose key the home lacks) is not."""
    if action.row is Row.UPDATE and action.hold is not None:
        return not action.changes or any(c.base is not None for c in action.changes)
    return action.row in _STANDING or action.row is Row.BLOCKED


def _referring(actions: Sequence[Action]) -> list[Action]:
    """Holds rows that refer to a thing which is neither there nor about to be made (E37)."""
    coming = {a.address.path for a in actions if a.row in (Row.CREATE, Row.MISSING)}
    checked = []
    for action in actions:
        if action.writes:
            refs = {ref for change in action.changes if change.writes for ref in references(change.write)}
            nowhere = sorted(refs - coming)
            if nowhere:
                why = f"refers to {', '.join(nowhere)}, which is neither ours nor declared"
                action = replace(action, hold=Hold(why))
        checked.append(action)
    return checked


def _chosen(actions: list[Action], targets: Sequence[str]) -> tuple[list[Action], int]:
    """The rows that the targets take in, with what those need; and how many are left out."""
    if not targets:
        return actions, 0
    by_address = {a.address: a for a in actions}
    wanted = {a.address for a in actions if any(selects(t, a.address) for t in targets)}
    queue = list(wanted)
    while queue:
        action = by_address[queue.pop()]
        for need in (*action.needs, *action.after):
            other = by_address.get(need)
            if other is not None and need not in wanted and (other.writes or other.records):
                wanted.add(need)
                queue.append(need)
    chosen = [a for a in actions if a.address in wanted]
    left = sum(1 for a in actions if a.address not in wanted and a.row is not Row.IN_SYNC)
    return chosen, left


def _unmanaged(home: str, observation: Observation, state: HomeState) -> list[Action]:
    owned = set()
    for things in state.owners.values():
        for path, ours in things.items():
            address = Address.parse(f"{home}/{path}")
            owned.add((address.profile, address.kind, ours.id))
    rows = []
    for thing in observation.all():
        profile = thing.id if thing.kind is Kind.PROFILE else thing.profile
        if (profile, thing.kind, thing.id) not in owned and not (thing.kind is Kind.PROFILE and thing.id == "default"):
            key = "" if thing.kind is Kind.PROFILE else thing.id
            rows.append(
                Action(
                    Row.UNMANAGED,
                    Address(home, profile, thing.kind, key),
                    thing.id,
                    reason=thing.name or "not declared",
                )
            )
    return rows


def _rebuilt(lost: Sequence[Lost], options: Options) -> Sequence[Lost]:
    """The lost stores that the command line says are to be made again: all or none."""
    return lost if options.allow & {"rebuild", "replaced-home"} else ()


def _home_hold(
    inputs: HomeInputs,
    provider: Provider,
    options: Options,
    observation: Observation,
    contact: Contact,
    provisioning: bool,
    lost: Sequence[Lost],
) -> tuple[Hold | None, str]:
    """The first thing that holds the whole home, and the guard that lifts it."""
    home, allow = inputs.ref.id, options.allow
    if contact.hold:
        return contact.hold, ""
    if observation.blocked:
        return Hold(observation.blocked, f"reconciler plan {home}  # once that is no longer so"), ""
    untested = provider.supported(observation.version) or outside(observation.version, inputs.ref.version_range)
    if untested and "unknown-version" not in allow:
        return Hold(untested, f"reconciler apply {home} --allow unknown-version"), "unknown-version"
    if lost and not _rebuilt(lost, options):
        why = f"{lost[0].why}: the home was lost or replaced"
        return Hold(why, f"reconciler apply {home} --allow rebuild"), "rebuild"
    if not provisioning and not contacts.known(contact.state, inputs.owner):
        return Hold("first contact: this setup has not met this home", f"reconciler adopt {home}"), ""
    return None, ""
