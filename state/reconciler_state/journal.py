"""The journal of a physical home: what was begun and how it ended, appended line by line and never edited (L9, L11).

A line is one JSON object with a `what`: `run` (header), `begin` (an intent), `outcome`, `seen` (what nobody declared),
`run-end`, or `torn` (the line before was cut off by a crash).
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from reconciler_specs.address import Address
from reconciler_specs.shape import Json

from .entries import FORMAT, earlier, number, part, record, records, text
from .errors import StateDamaged, StateError, StateMoved
from .files import Files
from .record import HomeState
from .store import Physical
from .veil import has_long

TAIL: Final = 1024  # bytes: more than a `run-end` takes
PART: Final = 8 * 2**20  # bytes: a journal that has grown past this goes on in a new file, and the old one is kept
MOST: Final = 10**6  # parts that a journal may say came before it: more were never written by us
UNCERTAIN: Final = "uncertain"
FOUND: Final = "found"
"""The reason of a `settled` outcome where state has the thing after the run that looked for it."""
Share = Callable[[bytes], AbstractContextManager[None]]
"""Tells other runners what a run begins with, before it is added here and while it is."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One action about to be carried out. `digest` stands for what will be written; no secret is journaled (L5).

    `known_ids` are the harness ids seen before a create, so that a create whose answer was lost can be told from
    what was there; None for a kind that is matched by place. `tier` is the consent that it needed. `before` is what
    undo would declare, by field, of a secret only that it was one; `rows` the field rows of an update.
    """

    address: Address
    row: str
    id: str = ""
    digest: str = ""
    known_ids: tuple[str, ...] | None = None
    tier: str = ""
    before: Mapping[str, Json] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Intent:
    """A begun action. `intent` is its id: random and unguessable, the marker that a create leaves in the record.

    `path` is the address below its home.
    """

    intent: str
    run: str
    owner: str
    path: str
    row: str
    kind: str
    profile: str
    id: str
    digest: str
    known_ids: tuple[str, ...] | None
    at: str


@dataclass(frozen=True, slots=True)
class Done:
    """How an intent ended: the outcome's name (L10), why, the fields that do not hold, the harness id, the door."""

    intent: str
    outcome: str
    reason: str = ""
    fields: tuple[str, ...] = ()
    id: str = ""
    door: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """One action of an earlier run; `outcome` is "" while it is open."""

    intent: Intent
    outcome: str
    reason: str
    at: str


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


_BACK = "reconciler state repair  # or put the later copy back"


class Journal:
    """One home's journal. A run: `start`, (`begin`, `done`)*, `end`.

    Nothing is created or written before the first `begin` or `done` (L7). Writers hold the home's lock.
    """

    def __init__(
        self,
        path: Path,
        files: Files | None = None,
        clock: Callable[[], str] = now,
        share: Share | None = None,
        texts: bool = True,
    ) -> None:
        self.path = path
        self.run = ""
        self._files = files or Files()
        self._clock = clock
        self._share = share
        self._texts = texts  # whether long texts may stand in it: without them undo cannot put them back
        self._ids: dict[Address, str] = {}  # of what this run has journaled
        self._untried: set[str] = set()  # announced, and not begun yet
        self._header: dict[str, Any] | None = None
        self._started = False
        self._unsure = True  # whether the file ends with a whole line

    @classmethod
    def of(
        cls,
        root: Path,
        physical: Physical,
        files: Files | None = None,
        share: Share | None = None,
        texts: bool = True,
    ) -> Journal:
        """The journal of a home in the state folder `root`."""
        return cls(root / "journal" / f"{physical.key}.jsonl", files, share=share, texts=texts)

    # -- reading -----------------------------------------------------------------------------------------------

    def entries(self) -> list[Mapping[str, Any]]:
        """Every record, in order. A last line that a crash cut off is skipped (later runs mark it `torn`).

        Raises StateDamaged for any other bad line, StateTooNew.
        """
        return records(self._files.read(self.path) or b"", self.path)

    def check_whole(self) -> None:
        """Raises StateDamaged if the file holds not one whole record: nothing that we write leaves it so, and what
        was begun and not ended cannot be told."""
        if self._last_end() is None and self._files.read(self.path) is not None and not self.entries():
            raise StateDamaged(self.path, "is empty, or holds nothing of ours")

    def open_intents(self) -> list[Intent]:
        """What was begun and whose end is not known: cut off, or `uncertain`. The next run settles it by looking, and
        says so with `done`."""
        last = self._last_end()
        return [] if last is not None and last.get("open") == 0 else self._open(self.entries())

    def _last_end(self) -> Mapping[str, Any] | None:
        """The `run-end` that the journal ends with, if it does: then a plan need not look at all that was before."""
        data = self._files.tail(self.path, TAIL)
        last = record(data[:-1].rpartition(b"\n")[2]) if data.endswith(b"\n") else None
        return last if last is not None and last["what"] == "run-end" else None

    def _open(self, entries: Sequence[Mapping[str, Any]]) -> list[Intent]:
        ended = {
            text(e, "intent"): text(e, "outcome") not in ("", UNCERTAIN) for e in entries if e["what"] == "outcome"
        }
        still = (e for e in entries if e["what"] != "begin" or not ended.get(text(e, "intent")))
        return [p.intent for p in self._past(still)]

    def history(self, path: str) -> list[Past]:
        """What was done to one address (its path below the home), oldest first, over all parts of the journal."""
        return [p for p in self._past(self.all_entries()) if p.intent.path == path]

    def all_entries(self) -> list[Mapping[str, Any]]:
        """Every record of every part of the journal, oldest first. Raises as `entries`."""
        parts = [*(Journal(p, self._files) for p in self._earlier().values()), self]
        return [entry for part in parts for entry in part.entries()]

    def gone(self) -> list[str]:
        """The names of earlier parts that are not there any more: of what was done then nothing is known."""
        there = self._earlier()
        last = max([*there, self._number()])
        return [part(self.path, which).name for which in range(1, last + 1) if which not in there]

    def _number(self) -> int:
        """How many parts came before this one, as its first record says."""
        first = next(iter(self.entries()), {})
        # One that begins with how a run ended goes on from another; which one, older versions did not write down.
        which = number(first, "part")
        return which if 0 < which < MOST else int(text(first, "what") == "run-end")

    def check(self, state: HomeState) -> None:
        """Raises StateMoved if the state is older than a run in this journal left it, or of another lineage (E21);
        StateDamaged if there is a state, and its journal has nothing in it."""
        self.check_whole()
        last = self._last_end()
        if last is not None and text(last, "lineage") == state.lineage and number(last, "serial") <= state.serial:
            return
        left: dict[str, int] = {}
        for entry in self.entries():
            if entry["what"] == "run-end" and text(entry, "lineage"):
                left[text(entry, "lineage")] = number(entry, "serial")
            elif entry["what"] == "run" and not text(entry, "lineage"):
                left = {}  # a run that found no state begins a new lineage
        if left and state.lineage not in left:
            raise StateMoved(
                f"the state of {state.path} has lineage {state.lineage}, which no run here has written", hint=_BACK
            )
        if state.serial < left.get(state.lineage, 0):
            raise StateMoved(
                f"the state of {state.path} went back from serial {left[state.lineage]} to {state.serial}: "
                "an older copy was put in place",
                hint=_BACK,
            )

    def _past(self, entries: Iterable[Mapping[str, Any]]) -> list[Past]:
        owner, found = "", dict[str, Past]()
        for entry in entries:
            if entry["what"] == "run":
                owner = text(entry, "owner")
            elif entry["what"] == "begin":
                intent = _intent(entry, owner)
                found[intent.intent] = Past(intent, "", "", intent.at)
            elif entry["what"] == "outcome" and (past := found.get(text(entry, "intent"))):
                outcome = text(entry, "outcome")
                found[past.intent.intent] = Past(past.intent, outcome, text(entry, "reason"), text(entry, "at"))
        return list(found.values())

    # -- writing -----------------------------------------------------------------------------------------------

    def start(
        self,
        *,
        owner: str,
        home: str = "",
        state: HomeState | None = None,
        version: str = "",
        run: str = "",
        who: Mapping[str, Json] | None = None,
    ) -> None:
        """Names the run whose records follow, and the state that it found.

        `run` is its id, one for all homes of a command (drawn if none is given). `home` (what the setup calls it),
        `who` (the provenance) and `version` (the harness's) are for people.
        """
        self.run, self._started = run or secrets.token_hex(6), False
        self._ids, self._untried = {}, set()
        lineage, serial = (state.lineage, state.serial) if state else ("", 0)
        self._header = {"owner": owner, "home": home, "version": version, "lineage": lineage, "serial": serial}
        if who:
            self._header["who"] = dict(who)

    def announce(self, actions: Sequence[Planned]) -> None:
        """Journals the intents of all steps at once, where other runners are to know of them before the first write.
        What is then not begun is `skipped` when the run ends."""
        if self._share is not None:
            self._untried = set(self.begin(actions).values())

    def begin(self, actions: Sequence[Planned]) -> dict[Address, str]:
        """Journals a step's intents, unless they were announced, and returns their ids. On return they are on the
        disk: the door may be used."""
        fresh = [action for action in actions if action.address not in self._ids]
        self._ids |= {action.address: secrets.token_hex(10) for action in fresh}
        ids = {action.address: self._ids[action.address] for action in actions}
        self._untried -= set(ids.values())
        self._append(
            [
                {
                    "what": "begin",
                    "intent": ids[a.address],
                    "run": self.run,
                    "path": a.address.path,
                    "kind": a.address.kind.value,
                    "profile": a.address.profile,
                    "row": a.row,
                    "id": a.id,
                    "digest": a.digest,
                    "known_ids": None if a.known_ids is None else list(a.known_ids),
                    **({"tier": a.tier} if a.tier else {}),
                    **({"before": before} if (before := self._before(a)) else {}),
                    **({"rows": dict(a.rows)} if a.rows else {}),
                }
                for a in fresh
            ],
            sync=True,
        )
        return ids

    def _before(self, action: Planned) -> dict[str, Json]:
        """What undo would declare, without long texts if none may stand here; of a deleted thing all or nothing."""
        kept = {name: value for name, value in action.before.items() if self._texts or not has_long(value)}
        return {} if action.row == "delete" and len(kept) < len(action.before) else kept

    def done(self, outcomes: Sequence[Done]) -> None:
        """Journals how intents ended, of this run or of one that was cut off.

        Not waited for: an outcome that the disk loses leaves its intent open, and the next run looks.
        """
        self._append(
            [
                {
                    "what": "outcome",
                    "intent": d.intent,
                    "run": self.run,
                    "outcome": d.outcome,
                    "reason": d.reason,
                    "fields": list(d.fields),
                    "id": d.id,
                    **({"door": d.door} if d.door else {}),
                }
                for d in outcomes
            ]
        )

    def end(self, state: HomeState | None = None, seen: Mapping[str, Sequence[str]] | None = None) -> None:
        """Closes the run, with the state that it left; writes nothing if the run wrote nothing.

        `seen` is what stood in the home that nobody declared, by store: should it be lost, this says what was lost.
        """
        if self._started:
            self._skip()
            left = {"lineage": state.lineage, "serial": state.serial} if state else {}
            still = len(self._open(self.entries()))
            told = {store: list(names) for store, names in (seen or {}).items()}
            # In a record of its own: the last line stays short enough to be read by itself.
            found = [{"what": "seen", "run": self.run, "seen": told}] if told else []
            self._append([*found, {"what": "run-end", "run": self.run, "open": still, **left}])
        self._header = None

    def withdraw(self) -> bool:
        """Closes what was announced and not begun, for a run that fails: no write of it was tried. Where that cannot be
        written any more, the next run looks. Whether this run has written anything."""
        with suppress(StateError):
            self._skip()
        return self._started

    def _skip(self) -> None:
        untried, self._untried = self._untried, set()
        self.done([Done(intent, "skipped", "not begun") for intent in self._ids.values() if intent in untried])

    def _earlier(self) -> dict[int, Path]:
        return earlier(self.path, self._files.names(self.path.parent))

    def _new_part(self) -> None:
        """Goes on in a new file once this one is large and all in it is settled. The new one begins with how the last
        run ended, so that `check` goes on knowing it."""
        last = self._last_end() if self._files.size(self.path) > PART else None
        if last is None or last.get("open") != 0:
            return
        which = max([*self._earlier(), self._number()]) + 1
        self._files.move(self.path, part(self.path, which))
        first = json.dumps({**last, "part": which}, sort_keys=True)
        self._files.append(self.path, first.encode("ascii") + b"\n", sync=False)

    def _append(self, records: Sequence[Mapping[str, Any]], sync: bool = False) -> None:
        if self._header is None:
            raise RuntimeError("a journal is written between start and end")
        lines = list(records)
        if not lines:
            return
        if not self._started:
            self._new_part()
            host = {"host": socket.gethostname(), "pid": os.getpid()}
            lines.insert(0, {"what": "run", "format": FORMAT, "run": self.run, **host, **self._header})
        at = self._clock()
        data = b"".join(json.dumps({**r, "at": at}, sort_keys=True).encode("ascii") + b"\n" for r in lines)
        if self._unsure:
            data = self._mend(at) + data
        self._unsure = True
        with self._share(data) if self._share is not None and not self._started else nullcontext():
            self._files.append(self.path, data, sync)
        self._unsure, self._started = False, True

    def _mend(self, at: str) -> bytes:
        """What has to come first if the last line was cut off: history is not edited, so it stays, marked as such."""
        before = self._files.read(self.path) or b""
        newline = b"" if before.endswith(b"\n") or not before else b"\n"
        last = before.rstrip(b"\n").rpartition(b"\n")[2]
        torn = bool(last) and record(last) is None
        return newline + (json.dumps({"what": "torn", "at": at}).encode("ascii") + b"\n" if torn else b"")


def _intent(entry: Mapping[str, Any], owner: str) -> Intent:
    known = entry.get("known_ids")
    names = ("intent", "run", "path", "row", "kind", "profile", "id", "digest", "at")
    texts = {name: text(entry, name) for name in names}
    ids = tuple(str(i) for i in known) if isinstance(known, list) else None
    return Intent(owner=owner, known_ids=ids, **texts)
