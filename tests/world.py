"""A whole reconciler around homes in memory, for tests of the engine: plan, apply, and edits behind its back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.action import Action, Row
from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.event import Event
from reconciler.plan import Options, Plan
from reconciler.testing.memory import MemoryHome, MemoryProvider
from reconciler.workspace import Workspace
from reconciler_specs.address import Address, Kind
from reconciler_specs.load import load_text
from reconciler_state.local import LocalStore

HEAD = "version: 1\nname: solo\n"
JOBS = "        jobs:\n          brief: {schedule: {every: 30m}, prompt: Write., deliver: local}\n"


def home_text(profile: str = JOBS) -> str:
    """A `homes:` block with one home, `main`; `profile` is what its default profile declares."""
    return (
        "homes:\n  main:\n    harness: hermes\n    path: HOME/main\n    first_contact: adopt\n"
        f"    profiles:\n      default:\n{profile}"
    )


JOB = {"schedule": {"every": "30m"}, "prompt": "Write the brief.", "deliver": "local"}


class World:
    """One folder with state and home directories; `setup(text)` is what the author has written now."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory = MemoryProvider()
        self.provider: Any = self.memory
        self.store = LocalStore(root / "state")
        self.text = ""
        self.now = datetime(2026, 6, 3, 12, tzinfo=UTC)  # a Wednesday; moved on by tests of grace periods and windows

    def home(self, name: str = "main") -> MemoryHome:
        path = self.root / name
        path.mkdir(exist_ok=True)
        return self.memory.home(path.resolve())

    def setup(self, text: str) -> None:
        self.text = text.replace("HOME", str(self.root))

    def space(self) -> Workspace:
        setup = load_text(self.text, "setup.yaml", self.root)
        store = LocalStore(self.root / "state", self.store.files)
        space = Workspace(setup, store, {"hermes": self.provider})
        space.now = lambda: self.now  # type: ignore[method-assign]
        return space

    def plan(self, options: Options | None = None) -> Plan:
        return self.space().plan(options or Options())

    def apply(self, consent: Consent | None = None, options: Options | None = None) -> list[Event]:
        """Plans and applies; without a consent everything is agreed to, deletes included, as at a terminal."""
        space, options = self.space(), options or Options()
        plan = space.plan(options)
        if consent is None:
            rows = frozenset(digest for h in plan.homes for digest in h.asked)
            consent = Consent(yes=True, approved=rows, terminal=True, reviewed=True)
        consent = replace(consent, restore=options.restore, allow=options.allow)
        return list(apply(plan, consent, space, options))

    def rows(self, options: Options | None = None) -> dict[str, Action]:
        return {str(a.address): a for h in self.plan(options).homes for a in h.actions}

    def edit(self, edits: Sequence[dict[str, Any]]) -> None:
        """Changes homes as somebody else would: `{delete: …}`, `{set: ADDRESS, field: value}`, `{add: name, …}`."""
        for edit in edits:
            edit = dict(edit)
            home = self.home(edit.pop("home", "main"))
            if "add" in edit:
                home.add_job(edit.pop("add"), edit.pop("profile", "default"), **{**JOB, **edit})
            elif "place" in edit:  # a file, setting or profile by its address path
                address = Address.parse(f"main/{edit.pop('place')}")
                key = ("" if address.kind is Kind.PROFILE else address.profile, address.kind)
                name = address.profile if address.kind is Kind.PROFILE else address.key
                home.things.setdefault(key, {}).setdefault(name, {}).update(edit)
            elif "attribute" in edit:
                setattr(home, edit["attribute"], edit["value"])
            else:
                path = edit.pop("delete", None) or edit["set"]
                address = Address.parse(f"main/{path}")
                things = home.things[("" if address.kind is Kind.PROFILE else address.profile, address.kind)]
                harness_id = self.id_of(address, home)
                if "set" in edit:
                    edit.pop("set")
                    things[harness_id].update(edit)
                else:
                    del things[harness_id]

    def id_of(self, address: Address, home: MemoryHome) -> str:
        """The harness id of a thing, from state (edits address things as their author does)."""
        if address.kind is not Kind.JOB:
            return address.profile if address.kind is Kind.PROFILE else address.key
        for state in (self.store.read(p) for p in self.store.list()):
            for things in state.owners.values() if state else ():
                if address.path in things:
                    return things[address.path].id
        raise KeyError(str(address))


def outcomes(events: Sequence[Event]) -> dict[str, str]:
    """The last outcome per address."""
    return {str(e.address): str(e.outcome) for e in events if e.what == "outcome"}


def writing(rows: dict[str, Action]) -> dict[str, Row]:
    return {a: r.row for a, r in rows.items() if r.writes}
