"""What the conformance suite runs on: a harness's kit, and a world with one fresh home of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from reconciler_specs.load import load_text
from reconciler_state.local import LocalStore

from ..action import Action
from ..apply import apply
from ..consent import Consent
from ..errors import ProviderError
from ..event import Event
from ..observe import Observation, Wanted
from ..plan import Options, Plan
from ..provider import Provider
from ..workspace import Workspace
from .faulty import BlindPlace, Fault, FaultyProvider

CANARY = "sk-canary-" + "0123456789abcdef" * 2


class Home(Protocol):
    """A real home of the harness, and the ways in which somebody else changes it."""

    path: Path

    def jobs(self) -> Mapping[str, str]:
        """Harness id → name, as the harness itself tells."""
        ...

    def add_job(self, name: str, prompt: str) -> str: ...

    def edit_job(self, harness_id: str, prompt: str) -> None: ...

    def delete_job(self, harness_id: str) -> None: ...

    def break_jobs(self) -> None:
        """Makes the job store unreadable, as a crash or an editor would."""
        ...

    def put_secret(self, value: str) -> None:
        """Puts a secret where the harness keeps such things, and in one place where it should not be."""
        ...


@dataclass(frozen=True)
class More:
    """A thing of another kind than a job: `path` is its address in the home, `said` and `changed` are how a setup says
    it in the default profile (YAML lines), and `edit(home)` is what somebody else does to it."""

    path: str
    said: str
    changed: str
    edit: Callable[[Path], None]


@dataclass(frozen=True)
class Kit:
    """`make(path)` makes a fresh home there; `door` is the setup's `door:` block as YAML flow; `volatile` names the
    files (glob, relative to the home) that the harness itself touches when it is only looked at; `provisions` is False
    where the door is one that only a running harness has, so that it cannot make a home. `more` are things of other
    kinds, each of which has to live as a job does. `restart` is the home's word for it."""

    provider: Provider
    make: Callable[[Path], Home]
    door: str = "{}"
    volatile: Sequence[str] = ()
    provisions: bool = True
    more: Sequence[More] = ()
    restart: str = "ask"


@dataclass
class World:
    """One setup over one fresh home, with a folder of its own for state."""

    kit: Kit
    root: Path
    home: Home
    provider: Any

    def text(self, jobs: str = "", rest: str = "", name: str = "solo", first: str = "adopt", extra: str = "") -> str:
        body = "".join(
            f"        {line}\n" for line in (rest + ("\njobs:\n" + jobs if jobs else "")).strip().splitlines()
        )
        return (
            f"version: 1\nname: {name}\nhomes:\n  main:\n    harness: {self.kit.provider.harness}\n"
            f"    path: {self.home.path}\n    door: {self.kit.door}\n    first_contact: {first}\n"
            f"    restart: {self.kit.restart}\n    profiles:\n      default:\n{body or '        {}' + chr(10)}{extra}"
        )

    def space(self, text: str) -> Workspace:
        setup = load_text(text, "setup.yaml", self.root)
        store = LocalStore(self.root / "state")
        return Workspace(setup, store, {self.kit.provider.harness: self.provider})

    def plan(self, text: str, options: Options | None = None) -> Plan:
        return self.space(text).plan(options or Options())

    def rows(self, text: str, options: Options | None = None) -> dict[str, Action]:
        plan = self.plan(text, options)
        assert not plan.homes[0].failed, plan.homes[0].failed
        return {a.address.path or "home": a for a in plan.homes[0].actions}

    def apply(self, text: str, options: Options | None = None, consent: Consent | None = None) -> list[Event]:
        space, options = self.space(text), options or Options()
        plan = space.plan(options)
        if consent is None:
            rows = frozenset(digest for h in plan.homes for digest in h.asked)
            consent = Consent(yes=True, approved=rows, terminal=True, reviewed=True)
        return list(apply(plan, replace(consent, restore=options.restore, allow=options.allow), space, options))

    def converge(self, text: str) -> None:
        """Applies, expects every outcome to be `applied`, and the next plan to be empty."""
        done = outcomes(self.apply(text))
        assert set(done.values()) <= {"applied"}, done
        rows = self.rows(text)
        assert not rows, {k: (str(a.row), [(c.field, str(c.row)) for c in a.changes]) for k, a in rows.items()}

    def look(self, text: str, blind: tuple[str, str] | None = None) -> tuple[BlindPlace, Observation | None]:
        """One read of the home with one look of it failing; None where the home as a whole was then refused."""
        space = self.space(text)
        ref = space.ref("main")
        place = BlindPlace(ref.place, blind)
        try:
            return place, space.observe(replace(ref, place=place), Wanted(frozenset(space.desired("main"))))
        except ProviderError:
            return place, None

    def tree(self) -> dict[str, str]:
        """Digest per file of the home, without what the harness touches by itself."""
        return tree(self.home.path, self.kit.volatile)


def outcomes(events: Sequence[Event]) -> dict[str, str]:
    """The last outcome per address path; a home that failed under its id."""
    return {
        (e.address.path or "home") if e.address else e.home: str(e.outcome) for e in events if e.outcome is not None
    }


def tree(root: Path, volatile: Sequence[str] = ()) -> dict[str, str]:
    """Digest per file below `root`; one that a harness takes away while it is looked at is none any more."""
    found = {}
    for folder, _, files in os.walk(root):
        for path in (Path(folder) / name for name in files):
            name = path.relative_to(root)
            if path.is_file() and not path.is_symlink() and not any(name.match(v) for v in volatile):
                with suppress(FileNotFoundError):
                    found[str(name)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return dict(sorted(found.items()))


def job(key: str = "brief", **fields: str) -> str:
    """A job as YAML lines; fields override, and `None` cannot be said (leave it out)."""
    said = {"schedule": "{every: 2h}", "prompt": "Write the brief.", "deliver": "local", **fields}
    return f"  {key}:\n" + "".join(f"    {k}: {v}\n" for k, v in said.items())


@contextmanager
def faulty(world: World, fault: Fault, hits: Callable[[Action], bool]) -> Iterator[None]:
    """The world's door with one fault, for the duration."""
    world.provider = FaultyProvider(world.kit.provider, fault, hits)
    try:
        yield
    finally:
        world.provider = world.kit.provider


def world(kit: Kit, root: Path) -> World:
    """A fresh world for one check, below `root`."""
    return World(kit, root, kit.make(root / "home"), kit.provider)
