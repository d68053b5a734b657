"""A saved plan is applied exactly: whatever changes between plan and apply, no write happens that was not approved."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler import planfile
from reconciler.action import Row
from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.errors import UsageError
from reconciler.event import Event, Outcome
from reconciler.plan import Options, Plan
from reconciler.provenance import Provenance
from reconciler.stale import explained, no_longer
from reconciler_specs.address import Address, Kind
from reconciler_specs.errors import SpecError
from reconciler_state.record import Base
from reconciler_state.store import Physical
from world import World, home_text

NOW = datetime(2031, 1, 1, tzinfo=UTC)
HEAD = "version: 1\nname: solo\n"


def job(prompt: str, every: str = "30m") -> dict[str, str]:
    return {"schedule": f"{{every: {every}}}", "prompt": prompt, "deliver": "local"}


def text(jobs: dict[str, dict[str, str]], model: str = "large", extra: str = "") -> str:
    lines = "        jobs:\n" if jobs else ""
    for key, fields in jobs.items():
        lines += f"          {key}: {{{', '.join(f'{k}: {v}' for k, v in fields.items())}}}\n"
    return HEAD + home_text(f"{lines}        settings: {{one.two: {model}}}\n") + extra


BEFORE = {"brief": job("Write."), "old": job("Old."), "plants": job("Water."), "still": job("Rest.")}
WANTED = {"brief": job("Write more."), "fresh": job("New."), "plants": job("Water.", "45m"), "still": job("Rest.")}


@dataclass
class Scene:
    """A world with its setup's jobs as they are to be at the apply; mutations change one or the other."""

    world: World
    jobs: dict[str, dict[str, str]]
    model: str = "larger"
    extra: str = ""

    def record(self, key: str) -> dict[str, Any]:
        home = self.world.home()
        return home.jobs()[self.world.id_of(Address.parse(f"main/default/jobs/{key}"), home)]

    def state(self, key: str, change: Callable[[Any], Any]) -> None:
        where = Physical("local", "hermes", str((self.world.root / "main").resolve()))
        state = self.world.store.read(where)
        assert state is not None
        path = f"default/jobs/{key}"
        self.world.store.write(state.with_owned("solo", path, change(state.owned("solo")[path])), state.serial)


def edit(key: str, **fields: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.record(key).update(fields)


def drop(key: str) -> Callable[[Scene], None]:
    def change(scene: Scene) -> None:
        home = scene.world.home()
        del home.jobs()[scene.world.id_of(Address.parse(f"main/default/jobs/{key}"), home)]

    return change


def says(key: str, **fields: str) -> Callable[[Scene], None]:
    return lambda scene: scene.jobs.update({key: {**scene.jobs.get(key, job("x")), **fields}})


def based(key: str, name: str, value: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.state(
        key, lambda owned: replace(owned, fields={**owned.fields, name: Base(value, value)})
    )


# What may change between plan and apply, and a word of which one has to be in each refusal that it brings.
CHANGES: dict[str, tuple[Callable[[Scene], object], str]] = {
    "setup: the value to write": (says("brief", prompt="Write less."), "setup"),
    "setup: another field of the same job": (says("brief", name="Brief"), "setup"),
    "setup: what was to be created": (says("fresh", prompt="Newer."), "setup"),
    "setup: what was to be created is gone": (lambda s: s.jobs.pop("fresh"), "setup"),
    "setup: what was to be deleted is back": (lambda s: s.jobs.update(old=job("Old.")), "setup"),
    "setup: another row comes": (says("late"), "setup"),
    "setup: another row goes": (lambda s: s.jobs.pop("still"), "setup"),
    "setup: back to what it was": (lambda s: s.jobs.update(brief=BEFORE["brief"]), "setup"),
    "setup: the setting": (lambda s: setattr(s, "model", "huge"), "setup"),
    "setup: protected": (says("plants", protect="true"), "setup"),
    "setup: released": (lambda s: setattr(s, "extra", "released: [main/default/jobs/old]\n"), "released"),
    "setup: more consent asked": (lambda s: setattr(s, "extra", "policy: {raise: {set jobs: confirm}}\n"), ""),
    "home: the value to be replaced": (edit("brief", prompt="Mine."), "home"),
    "home: another field of the same job": (edit("brief", deliver="telegram:1"), "home"),
    "home: what was to be changed is gone": (drop("brief"), "home"),
    "home: what was to be deleted was edited": (edit("old", prompt="Mine."), "home"),
    "home: what was to be deleted is gone": (drop("old"), "home"),
    "home: already as wanted": (edit("brief", prompt="Write more."), "home"),
    "home: another thing changes": (edit("still", prompt="Mine."), "home"),
    "home: a namesake of the new one": (lambda s: s.world.home().add_job("fresh", prompt="x"), "home"),
    "home: the setting": (
        lambda s: s.world.home().things[("default", Kind.SETTING)].update({"one.two": {"value": "odd"}}),
        "home",
    ),
    "state: a base": (based("brief", "prompt", "Else."), "state"),
    "state: of another thing": (based("still", "prompt", "Else."), "state"),
    "version: an untested one": (lambda s: setattr(s.world.home(), "version", "2.0"), "version"),
}


def things(world: World) -> dict[tuple[str, str], dict[str, Any]]:
    """All that the home holds: (kind, id) → fields."""
    found = copy.deepcopy(world.home().things)
    return {
        (str(kind), harness_id): {n: v for n, v in fields.items() if n != "$marker"}
        for (_, kind), records in found.items()
        for harness_id, fields in records.items()
    }


def allowed(plan: Plan) -> tuple[list[dict[str, Any]], dict[tuple[str, str], dict[str, Any]], set[tuple[str, str]]]:
    """What the approved plan writes: new records, fields of records that are there, and deletes."""
    new, set_, gone = [], {}, set()
    for action in plan.homes[0].open:
        key = (str(action.address.kind), action.id or action.address.key)
        written = {c.field: c.write for c in action.changes if c.writes}
        if action.row in (Row.CREATE, Row.MISSING):
            new.append(written)
        elif action.row is Row.DELETE:
            gone.add(key)
        elif action.writes:
            set_[key] = written
    return new, set_, gone


def by_plan(world: World, file: Path) -> list[Event]:
    """`apply --plan FILE --reviewed`, as the command line does it."""
    space, options = world.space(), Options()
    approved = planfile.read(file, "solo", NOW)
    plan = space.plan(options)
    rows = approved.standing(plan)
    consent = Consent(approved=rows, elsewhere=rows, only_approved=True, reviewed=True)  # made by another run
    events = [explained(event, plan, approved) for event in apply(plan, consent, space, options)]
    return [*events, *no_longer(plan, approved)]


def scene(root: Path) -> tuple[Scene, Path, Plan]:
    """A home at rest, a setup that changes, creates and deletes, and its saved plan."""
    world = World(root)
    world.home()
    world.setup(text(BEFORE))
    world.apply()
    world.setup(text(WANTED, "larger"))
    plan, file = world.plan(), root / "plan.json"
    assert len(plan.homes[0].open) == 5
    planfile.write(file, plan, NOW)
    return Scene(world, copy.deepcopy(WANTED)), file, plan


def never_unapproved(before: dict[tuple[str, str], Any], after: dict[tuple[str, str], Any], plan: Plan) -> None:
    new, set_, gone = allowed(plan)
    for key in before.keys() - after.keys():
        assert key in gone
    for key in after.keys() - before.keys():
        assert after[key] in new
    for key in before.keys() & after.keys():
        changed = {n: v for n, v in after[key].items() if before[key].get(n) != v}
        assert changed.items() <= set_.get(key, {}).items() and not before[key].keys() - after[key].keys()


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(sorted(CHANGES)), min_size=0, max_size=3, unique=True))
def test_the_same_writes_or_a_refusal_that_names_what_changed(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        at, file, plan = scene(Path(folder))
        for name in names:
            try:
                CHANGES[name][0](at)
            except KeyError:
                return  # an earlier change has taken the thing away
        at.world.setup(text(at.jobs, at.model, at.extra))
        try:
            at.world.space()
        except SpecError:
            return  # two changes that no setup can say together
        before = things(at.world)
        events = by_plan(at.world, file)
        never_unapproved(before, things(at.world), plan)
        approved = planfile.read(file, "solo", NOW)
        told = {str(e.address): e for e in events if e.what == "outcome"}
        failed = [e for e in events if e.what == "home-end" and e.outcome is not None]
        words = [CHANGES[name][1] for name in names]
        for address in approved.said:
            event = told.get(address)
            if event is None:
                assert failed or names, "an approved row was passed over in silence"
            elif event.outcome is not Outcome.APPLIED:
                assert event.outcome is Outcome.REFUSED and any(w and w in event.reason for w in words), event
        for event in failed:
            assert "version" in event.reason
        if not names:
            assert {e.outcome for e in told.values()} == {Outcome.APPLIED} and not at.world.plan().homes[0].open


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_each_change_by_itself(name: str, tmp_path: Path) -> None:
    """Of the rows that the change is about none is written silently otherwise, and all the others go on."""
    at, file, plan = scene(tmp_path)
    CHANGES[name][0](at)
    at.world.setup(text(at.jobs, at.model, at.extra))
    before = things(at.world)
    events = by_plan(at.world, file)
    never_unapproved(before, things(at.world), plan)
    refused = [e for e in events if e.outcome in (Outcome.REFUSED, Outcome.HELD)]
    applied = [e for e in events if e.outcome is Outcome.APPLIED]
    word = CHANGES[name][1]
    assert all(word and word in e.reason for e in refused), refused
    if name.startswith("version"):
        assert not applied and refused
    else:
        assert len(applied) >= 4, [e.reason for e in refused]
        in_place = {"setup: more consent asked", "setup: protected", "home: what was to be deleted is gone"}
        quiet = {"home: another thing changes", "state: of another thing", "home: already as wanted"}
        assert refused or name in in_place | quiet, name


def test_a_squash_merge_does_not_make_it_stale(tmp_path: Path) -> None:
    """Commit, author, run and serials are provenance: another commit with the same content is the same plan."""
    at, file, plan = scene(tmp_path)
    planfile.write(file, plan, NOW, provenance=Provenance("a" * 40, "topic", "ann", actor="ann", run="ci 7.1"))
    at.state("still", lambda owned: owned)  # the serial moves
    assert {e.outcome for e in by_plan(at.world, file) if e.what == "outcome"} == {Outcome.APPLIED}
    approved = planfile.read(file, "solo", NOW)
    assert (approved.run, approved.actor, approved.made) == ("ci 7.1", "ann", NOW)


def test_applied_twice_it_has_nothing_to_refuse(tmp_path: Path) -> None:
    at, file, _ = scene(tmp_path)
    by_plan(at.world, file)
    doors = at.world.memory.doors
    assert by_plan(at.world, file) == [] and at.world.memory.doors == doors


def test_another_place_is_another_home(tmp_path: Path) -> None:
    """The home's block moved to another path: nothing there was approved."""
    at, file, _ = scene(tmp_path)
    (tmp_path / "second").mkdir()
    at.world.memory.home((tmp_path / "second").resolve())
    at.world.setup(text(at.jobs, at.model).replace("HOME/main", "HOME/second"))
    events = by_plan(at.world, file)
    assert events and not [e for e in events if e.outcome is Outcome.APPLIED]


def test_another_door_is_another_home(tmp_path: Path) -> None:
    """The same home through another program is not what was approved, though every row is the same."""
    _, file, plan = scene(tmp_path)
    approved = planfile.read(file, "solo", NOW)
    assert len(approved.standing(plan)) == 5
    home = plan.homes[0]
    for ref in (
        replace(home.ref, options={**home.ref.options, "python": "/tmp/python"}),
        replace(home.ref, timezone="Asia/Tokyo"),
        replace(home.ref, version_range=">=2"),
    ):
        other = Plan(plan.owner, (replace(home, ref=ref),))
        assert other.homes[0].digests == home.digests and not approved.standing(other)
        refused = Event("outcome", "main", home.open[0].address, "update", Outcome.REFUSED, "not in the approved plan")
        assert "the home's own block in the setup changed" in explained(refused, other, approved).reason


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a document."""
    if isinstance(document, dict | list):
        for key, value in document.items() if isinstance(document, dict) else enumerate(document):
            yield from places(value, (*path, key))
    else:
        yield path


def test_any_edit_by_hand_is_told(tmp_path: Path) -> None:
    _, file, _ = scene(tmp_path)
    document = json.loads(file.read_text())
    for way in places(document):
        edited = copy.deepcopy(document)
        inner = edited
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = 7 if inner[way[-1]] != 7 else 8
        file.write_text(json.dumps(edited))
        with pytest.raises(UsageError):
            planfile.read(file, "solo", NOW)
    file.write_text(json.dumps(document))  # in another layout it says the same
    assert planfile.read(file, "solo", NOW).rows


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"format": "reconciler.planfile/1", "rows": []}', "another version"),
        (b'{"format": "reconciler.planfile/3"}', "another version"),
        (b'{"format": "reconciler.plan/1"}', "not a plan file"),
        (b"[]", "not a plan file"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"format": "reconciler.planfile/2"}', "changed since"),
    ],
)
def test_what_is_no_plan_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(UsageError, match=words):
        planfile.read(tmp_path / "plan.json", "solo", NOW)


def test_a_row_says_what_it_would_write(tmp_path: Path) -> None:
    _, file, _ = scene(tmp_path)
    rows = {row["address"]: row for row in json.loads(file.read_text())["rows"]}
    assert rows["main/default/jobs/brief"]["would"] == ["prompt: Write. → Write more."]
    assert rows["main/default/jobs/old"]["row"] == "delete" and rows["main/default/jobs/old"]["would"] == []
    assert "prompt: New." in rows["main/default/jobs/fresh"]["would"]


def test_an_approved_restart_is_of_what_runs_now(tmp_path: Path) -> None:
    """L8: once it was restarted, the same approval restarts nothing more."""
    world, digests = World(tmp_path), list[str]()
    world.home().gateways["default"] = "s1"
    for allow in ("1", "2", "3"):
        world.setup(HEAD + home_text(f"        channels:\n          telegram: {{enabled: true, allow: ['{allow}']}}\n"))
        options = Options(allow=frozenset({"restart"}))
        [home] = world.plan(options).homes
        digests += [home.digests[a.address] for a in home.open if a.row is Row.RESTART]
        world.apply(options=options)
    assert len(set(digests)) == len(digests) == 3
