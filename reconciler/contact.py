"""Contact: the state that a plan stands on, before its rows are made. Pure.

Renamed setups, `moved`, `released`, runs that were cut off and first contact each turn the state as stored into
the state as it will be, with one recording row for each thing they change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.setup import Setup
from reconciler_state.journal import Intent
from reconciler_state.record import HomeState, Owned

from .action import Action, Hold, Row
from .bind import bind
from .match import identity, match, place_id
from .observe import ABSENT, Absent, Observation, Observed, Unknown
from .provider import Canon, KindTraits, Provider, Resolve, traits_of

CREATING = frozenset({Row.CREATE.value, Row.MISSING.value})


@dataclass(frozen=True, slots=True)
class Contact:
    """The state to plan on and the rows that bring it about; `hold` holds the whole home."""

    state: HomeState
    actions: tuple[Action, ...] = ()
    hold: Hold | None = None
    notes: tuple[str, ...] = ()

    def then(self, state: HomeState, *actions: Action) -> Contact:
        return replace(self, state=state, actions=(*self.actions, *actions))


def known(state: HomeState, owner: str) -> bool:
    """Whether this setup has met this home before (L4)."""
    return owner in state.labels


def renamed(contact: Contact, home: str, owner: str, names: Sequence[str]) -> Contact:
    """E12: the setup's name changed; what one of its former `names` owned is its own."""
    state = contact.state
    formerly = next((n for n in names if n in state.labels), None)
    if formerly is None or owner in state.labels:
        return contact
    owners = {(owner if k == formerly else k): v for k, v in state.owners.items()}
    labels = {(owner if k == formerly else k): v for k, v in state.labels.items()}
    action = Action(
        Row.MOVED, Address(home), reason=f"the setup was called {formerly!r}", moved_from=f"setup:{formerly}"
    )
    return contact.then(replace(state, owners=owners, labels=labels), action)


def as_named(state: HomeState, setup: Setup) -> HomeState:
    """The state with what the setup owned under a former name under its name: what it will be once that is recorded."""
    return renamed(Contact(state), "-", setup.name, setup.formerly).state


def moved(
    contact: Contact,
    home: str,
    owner: str,
    pairs: Iterable[tuple[Address, Address]],
    observation: Observation,
    traits: Mapping[Kind, KindTraits],
) -> Contact:
    """E9: `moved` re-keys state and touches no home; applied twice it does nothing.

    What is known by its place, or would be in another profile, has another address only once it is at the other place:
    while it is where it was, the home is held, since it would be made again there and be nobody's here.
    """
    for source, target in pairs:
        if source.home != home or target.home != home:
            continue
        owned = contact.state.owned(owner)
        inside = [p for p in owned if p == source.path or p.startswith(f"{source.path}/")]
        for path in inside:
            to = target.path + path[len(source.path) :]
            address = Address.parse(f"{home}/{to}")
            if to in owned:
                why = f"moved: both {source} and {target} are owned"
                return replace(contact, hold=Hold(why, f"reconciler release {source}"))
            thing, old = owned[path], Address.parse(f"{home}/{path}")
            is_now = identity(address, thing.id, traits)
            if is_now != identity(old, thing.id, traits):
                seen = _where_it_was(old, thing, observation)
                strayed = (address.kind, thing.id) in observation.strays  # seen, and elsewhere than it was
                if seen is not ABSENT and not (strayed and isinstance(observation.at(*is_now), Observed)):
                    stays = "the home still has it there (without `moved` it is a delete and a create)"
                    why = seen.reason if isinstance(seen, Unknown) else stays
                    words = f"moved: {old} is known by where it is, and {why}"
                    return replace(contact, hold=Hold(words, f"reconciler release {old}"))
                thing = replace(thing, id=is_now[2])
            state = contact.state.without(owner, path).with_owned(owner, to, thing)
            action = Action(Row.MOVED, address, thing.id, reason=f"was {path}", moved_from=path)
            contact = contact.then(state, action)
    return contact


def _where_it_was(old: Address, thing: Owned, observation: Observation) -> Observed | Absent | Unknown:
    if old.kind is Kind.PROFILE or not old.profile:
        return observation.at("", old.kind, thing.id)
    gone = observation.at("", Kind.PROFILE, old.profile) is ABSENT  # and all that was in it
    return ABSENT if gone else observation.at(old.profile, old.kind, thing.id)


def released(contact: Contact, owner: str, home: str, addresses: Iterable[Address]) -> Contact:
    """`released:` lets go without deleting."""
    for address in addresses:
        if address.home != home:
            continue
        for path, thing in contact.state.owned(owner).items():
            if path == address.path or path.startswith(f"{address.path}/") or not address.path:
                action = Action(
                    Row.RELEASED, Address.parse(f"{home}/{path}"), thing.id, reason="let go; stays in the home"
                )
                contact = contact.then(contact.state.without(owner, path), action)
    return contact


def settled(
    contact: Contact,
    owner: str,
    home: str,
    intents: Sequence[Intent],
    resources: Mapping[Address, Resource],
    observation: Observation,
    canon: Callable[[Resource, Resolve], Canon],
) -> Contact:
    """L11: takes what a run that was cut off has made, found by our marker first, then by what is new.

    `intents` are this setup's, under its name or a former one.
    """
    for intent in intents:
        if intent.row == Row.PROVISION.value and not known(contact.state, owner):
            # The home is there: it was cut off after the folder was made. What it holds is looked at like the rest.
            state = replace(contact.state, labels={**contact.state.labels, owner: home})
            reason = f"made by run {intent.run}, which was cut off"
            contact = contact.then(state, Action(Row.SETTLED, Address(home), reason=reason))
        if intent.row not in CREATING:
            continue
        address = Address.parse(f"{home}/{intent.path}")
        resource = resources.get(address)
        thing = _made_by(intent, address, observation)
        marked = thing is not None and thing.marker == intent.intent
        known_as = contact.state.owned(owner).get(intent.path)
        # What is made again for one that is gone is owned by the old one's id until state is written.
        if known_as is not None and (thing is None or not marked or thing.id == known_as.id):
            continue
        if thing is None or (resource is None and not marked):
            continue
        if _others_own(contact.state, owner, address, thing):
            continue  # somebody has adopted it since, and the plan says whose it is (L3)
        if resource is None:
            owned = Owned(thing.id, "created")  # ours by its marker, and no longer declared: the plan deletes it
        else:
            declared = canon(resource, _resolver(contact.state, owner))
            owned = bind(declared, resource, thing, thing.id, "created")
            if not marked and any(name not in owned.fields for name in declared.fields):
                continue  # without our marker only what is just as we would have made it: else it is somebody's own
        state = contact.state.with_owned(owner, intent.path, owned)
        action = Action(Row.SETTLED, address, thing.id, reason=f"made by run {intent.run}, which was cut off")
        contact = contact.then(replace(state, labels={**state.labels, owner: home}), action)
    return contact


def _others_own(state: HomeState, owner: str, address: Address, thing: Observed) -> bool:
    paths = (p for o, things in state.owners.items() if o != owner for p, t in things.items() if t.id == thing.id)
    return any((a.profile, a.kind) == (address.profile, address.kind) for a in (Address.parse(f"-/{p}") for p in paths))


def _made_by(intent: Intent, address: Address, observation: Observation) -> Observed | None:
    store = observation.things.get(("" if address.kind is Kind.PROFILE else address.profile, address.kind), {})
    if isinstance(store, Unknown):
        return None
    for thing in store.values():
        if thing.marker == intent.intent:
            return thing
    if intent.known_ids is None:  # a kind matched by place: what is there now was not there then
        return store.get(place_id(address))
    new = [t for t in store.values() if t.id not in intent.known_ids and not t.marker and t.name == address.key]
    return new[0] if len(new) == 1 else None


def adopted(
    contact: Contact,
    owner: str,
    home: str,
    resources: Mapping[Address, Resource],
    observation: Observation,
    provider: Provider,
    *,
    chosen: Callable[[Address], bool] = lambda _address: True,
    mapping: Mapping[Address, str] | None = None,
) -> Contact:
    """Takes what is declared and found (E47): a base where the home satisfies it, none where it does not.

    `mapping` is `--map`: address → harness id, for what a name alone does not tell. A thing whose name fits
    several, or which another setup owns, is left for the plan to show.
    """
    mapping = mapping or {}
    others = {o: things for o, things in contact.state.owners.items() if o != owner}
    owned = {p: t for p, t in contact.state.owned(owner).items() if Address.parse(f"{home}/{p}") not in mapping}
    found: dict[Address, Observed] = {}
    for triple in match(home, resources, owned, others, observation, provider.traits):
        address = triple.address
        stands = traits_of(provider.traits, address.kind).stands(place_id(address))
        if triple.desired is None or triple.owned is not None or not chosen(address):
            continue
        if address in mapping:
            thing = observation.at(address.profile, address.kind, mapping[address])
            if isinstance(thing, Observed):
                found[address] = thing
        elif isinstance(triple.observed, Observed) and (stands or not triple.foreign):
            found[address] = triple.observed
        elif len(triple.namesakes) == 1 and not triple.foreign:
            found[address] = triple.namesakes[0]
        else:
            # E19: of several namesakes, the one that carries our marker is ours.
            marked = [t for t in triple.namesakes if t.marker]
            if len(marked) == 1 and not triple.foreign:
                found[address] = marked[0]
    suggested = {a.path: t.id for a, t in found.items()}
    state = contact.state
    taken: dict[str, Owned | None] = {}

    def resolve(path: str) -> str | None:
        return suggested.get(path) or _resolver(state, owner)(path)

    for address, thing in found.items():
        resource = resources[address]
        canon = provider.canon(resource, observation, resolve)
        owned_thing = bind(canon, resource, thing, thing.id, "adopted")
        if traits_of(provider.traits, address.kind).stands(place_id(address)) and not owned_thing.fields:
            continue  # nothing of it is as declared: the plan's `claim` will own it
        taken[address.path] = owned_thing
    state = replace(state.with_changes(owner, taken), labels={**state.labels, owner: home})
    reason = f"first contact: takes {len(taken)} thing(s) as they are, writes nothing"
    action = Action(Row.ADOPT, Address(home), reason=reason)
    return contact.then(state, action)


def _resolver(state: HomeState, owner: str) -> Resolve:
    owned: Mapping[str, Owned] = state.owned(owner)

    def resolve(path: str) -> str | None:
        thing = owned.get(path)
        return thing.id if thing else None

    return resolve


def resolver(state: HomeState, owner: str) -> Resolve:
    """Address path → harness id, from what this setup owns."""
    return _resolver(state, owner)
