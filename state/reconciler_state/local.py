"""State in files: `homes/KEY.json` per physical home, replaced as a whole, and `keys/KEY` with its digest key."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .approvals import Approvals
from .codec import body, decode, encode
from .errors import StateDamaged, StateError, StateMoved, StateTooNew
from .files import Files
from .journal import Journal
from .record import HomeState
from .store import KEY_BYTES, Physical, slug, successor
from .veil import MARKS


def default_root(environ: Mapping[str, str]) -> Path:
    """`$XDG_STATE_HOME/reconciler`, else `~/.local/state/reconciler`. A relative XDG path does not count."""
    home = environ.get("XDG_STATE_HOME", "")
    base = Path(home) if home.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return base / "reconciler"


class Repair(NamedTuple):
    """What `repair` put aside, and what it had to leave: a sentence per file."""

    aside: list[str]
    left: list[str]


class LocalStore:
    """A StateStore in the folder `root`. Nothing is made there before the first write.

    Writers hold the home's lock (L13); reading needs none, since a file is only ever replaced whole.
    """

    shared = False
    """Whether other runners have a copy of their own."""

    def __init__(self, root: Path, files: Files | None = None, folder: Path | None = None) -> None:
        self.root = root
        self.folder = folder or root  # of `homes` and `journal`; keys and locks are the machine's, in `root`
        self.files = files or Files()
        # What this run read or wrote last: a file that is still the same is not decoded again.
        self._last: dict[Physical, tuple[bytes, HomeState]] = {}
        self._ours: set[Physical] = set()

    def path(self, physical: Physical) -> Path:
        return self.folder / "homes" / f"{physical.key}.json"

    @property
    def where(self) -> str:
        """Where the state is, in words."""
        return str(self.root)

    def journal(self, physical: Physical) -> Journal:
        return Journal.of(self.folder, physical, self.files)

    def approvals(self) -> Approvals:
        """Where approvals are kept."""
        return Approvals(self.root, self.files)

    # What a store that is shared does more.

    def refresh(self, physical: Physical | None = None) -> None:
        """Takes over what other runners have recorded. With `physical`, whose lock is held: what is there now is what
        the run that follows stands on."""

    def publish(self, physical: Physical) -> None:
        """Gives other runners what was recorded of a home. Raises StateError."""

    def catch_up(self) -> None:
        """Gives other runners what earlier runs could not. Raises StateError."""

    def veiled(self, physical: Physical) -> bool:
        """Whether the state that was read last stands for values that only another runner knows."""
        last = self._last.get(physical)
        return last is not None and any(mark in last[0] for mark in MARKS)

    def copy(self, physical: Physical) -> dict[str, bytes]:
        """A home's state and journal as files, by their names in the folder."""
        key = physical.key
        names = [
            f"journal/{n}" for n in self.files.names(self.folder / "journal") if re.match(rf"{key}(\.\d+)?\.jsonl$", n)
        ]
        found = {name: self.files.read(self.folder / name) for name in (f"homes/{key}.json", *names)}
        return {name: data for name, data in found.items() if data is not None}

    def put(self, physical: Physical, files: Mapping[str, bytes]) -> None:
        """Makes a home's files these; what was there is kept beside them. Raises StateError unless they read back."""
        for name in {*self.copy(physical), *files}:
            if files.get(name) != self.files.read(self.folder / name):
                self.files.keep(self.folder / name)
        for name, data in sorted(files.items(), reverse=True):  # the state last (journal before homes): a kill is seen
            self.files.write(self.folder / name, data)
        self._last.pop(physical, None)
        if self.copy(physical) != files:
            raise StateError(f"{self.folder}: what was written does not read back")

    def notes(self, physical: Physical) -> Sequence[str]:
        """What a person should know of how this home's state came here."""
        return ()

    def read(self, physical: Physical) -> HomeState | None:
        """Raises StateDamaged, StateTooNew; StateMoved if this run has already seen a later state of this home."""
        path = self.path(physical)
        data = self.files.read(path)
        if data is None:
            return None
        last = self._last.get(physical)
        if last and last[0] == data:
            return last[1]
        state = decode(data, path)
        if Physical.of(state) != physical:
            raise StateDamaged(path, f"is the state of another home ({state.harness} at {state.path})")
        if last and (state.lineage != last[1].lineage or state.serial < last[1].serial):
            was, now = (f"{s.lineage} serial {s.serial}" for s in (last[1], state))
            raise StateMoved(f"{path}: was {was} a moment ago, and is {now}")
        self._last[physical] = (data, state)
        self._ours.discard(physical)
        return state

    def broken(self) -> Sequence[StateError]:
        """Why each state file that `list` leaves out cannot be read."""
        return [s for s in self._all() if isinstance(s, StateError)]

    def _all(self, skip: Collection[str] = ()) -> Iterator[HomeState | StateError]:
        for name in self.files.names(self.folder / "homes"):
            if not name.endswith(".json") or name in skip:
                continue
            path = self.folder / "homes" / name
            try:
                yield decode(self.files.read(path) or b"", path)
            except StateError as error:
                yield error

    def write(self, state: HomeState, expected_serial: int) -> HomeState:
        physical = Physical.of(state)
        current = self.read(physical)
        recorded = successor(current, state, expected_serial)
        data, path = encode(recorded), self.path(physical)
        if current is not None:
            new, old = (d.partition(b"\n")[2] for d in (data, self._last[physical][0]))
            # Equal bytes say it at once. A file that this run has not written may be damaged in part, or laid out by
            # other hands: there the content counts.
            if new == old or (physical not in self._ours and new == body(current)):
                return current
            if current.damaged:
                self.files.keep(path)
        self.files.write(path, data)
        self._last[physical] = (data, recorded)
        self._ours.add(physical)
        return recorded

    def probe(self) -> None:
        self.files.probe(self.folder / "homes")

    def repair(self, home: str | None = None, *, do: bool) -> Repair:
        """Puts damaged state files and journals aside, and a state that is older than its journal or of another lineage
        (the home then has no state, and can be adopted).

        `home` is a home's path, None for all. Without `do` it only says what it would do. What a newer program wrote
        is left as it is.
        """
        part = f"-{slug(home.rstrip('/').rpartition('/')[2])}-" if home else ""
        found = Repair([], [])
        for name in self.files.names(self.root / "keys"):
            path = self.root / "keys" / name
            if ".damaged-" not in name and part in f"{name}-" and len(self.files.read(path) or b"") != KEY_BYTES:
                found.aside.append(f"put aside: {path}: is no key of ours; secrets will look changed once")
                if do:
                    self.files.keep(path)
                    self.files.remove(path)
        for folder, suffix in (("homes", ".json"), ("journal", ".jsonl")):
            for name in self.files.names(self.folder / folder):
                path = self.folder / folder / name
                if not name.endswith(suffix) or part not in name:
                    continue
                try:
                    if folder == "homes":
                        state = decode(self.files.read(path) or b"", path)
                        with suppress(StateDamaged):  # of the journal, which has its own turn
                            Journal(self.folder / "journal" / f"{path.stem}.jsonl", self.files).check(state)
                    else:
                        Journal(path, self.files).check_whole()
                        Journal(path, self.files).entries()
                except StateTooNew as error:
                    found.left.append(f"left as it is: {error}")
                except (StateDamaged, StateMoved) as error:
                    found.aside.append(f"put aside: {error}")
                    if do:
                        self.files.keep(path)
                        self.files.remove(path)
                        self._last.clear()
                        self._ours.clear()
        return found

    def key_for(self, physical: Physical) -> bytes | None:
        """The home's 32 random bytes for digests of what must not be stored (L5); None if none are kept yet.

        Without the file old digests compare with nothing: hidden values then look changed, and are never shown.
        """
        path = self.root / "keys" / physical.key
        key = self.files.read(path)
        if key is not None and len(key) != KEY_BYTES:
            raise StateDamaged(path, f"holds {len(key)} bytes, not {KEY_BYTES}")
        return key

    def keep_key(self, physical: Physical, key: bytes) -> None:
        """Keeps a key for the home, unless one is kept already: another run may have been quicker."""
        self.files.create(self.root / "keys" / physical.key, key)

    # Last, since its name hides the type within this class.
    def list(self, skip: Collection[Physical] = ()) -> Sequence[Physical]:
        """Every home with a readable state but those in `skip`, sorted; `broken` has the others."""
        names = {f"{p.key}.json" for p in skip}
        return sorted(Physical.of(s) for s in self._all(names) if isinstance(s, HomeState))


def root_from(option: Path | None) -> Path:
    """The state folder: `--state DIR`, else the user's own."""
    return option.absolute() if option else default_root(os.environ)
