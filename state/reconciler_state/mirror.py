"""This machine's copy of the state on a branch: taken over from there, and brought there.

How a home's two copies stand to one another is told by their journals, which are only ever added to: one is the
beginning of the other, or they have parted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from .branch import Branch, Entry
from .codec import decode, encode
from .entries import records
from .errors import REPAIR, StateDamaged, StateError, StateMoved, StateTooNew
from .files import LIMIT, Files
from .layout import FOLDERS, FilesThere, common, holds, home_file, journal_file, key_of, order
from .message import message
from .record import HomeState
from .store import Physical
from .veil import Names, unveiled, veiled

TRIES: Final = 60  # pushes that others were quicker than; each time one of them got through
PAUSE: Final = 0.25  # seconds, at most, between two
_PARTED: Final = f"{REPAIR}  # puts this machine's copy aside; then the branch counts"


class Mirror:
    """`folder` is the copy: `homes`, `journal`, `names` (which digest a name stands for), `agreed`
    (the states in common) and `synced` (the commit).

    `wrong` has, by a home's key, why its files on the branch cannot be relied on; `notes` what a person should know of
    how others' came here. `tip` is the branch's last commit as we know it. `taken` is called with the key of a home
    whose files were taken over.
    """

    def __init__(
        self,
        branch: Branch,
        folder: Path,
        files: Files,
        *,
        verb: str,
        texts: bool,
        taken: Callable[[str], None],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.branch = branch
        self.folder = folder
        self.tip = ""
        self.wrong: dict[str, StateError] = {}
        self.notes: dict[str, list[str]] = {}
        self._files = files
        self._verb = verb
        self._texts = texts
        self._taken = taken
        self._pause = pause
        self._listed: tuple[str, dict[str, FilesThere]] = ("", {})

    # -- taking over ---------------------------------------------------------------------------------------------

    def sync(self, tip: str, skip: str = "") -> None:
        """Brings our copy in line with the branch at `tip`, but for the home `skip`. Raises StateMoved if the branch
        is not one that goes on from what we know."""
        known = self.known()
        self.wrong.clear()
        if known and not tip:
            raise StateMoved(
                f"the {self.branch.words} is gone; this machine has seen it at commit {known[:12]}",
                hint=f"push it again from where it still is; or, if that was meant: {_PARTED}",
            )
        if tip:
            self.branch.fetch(tip, known)
        if known and tip != known and not self.branch.continues(known, tip):
            raise StateMoved(
                f"the {self.branch.words} went back or was rewritten: commit {known[:12]}, which this machine has "
                f"seen, is not in it any more; the last one is {self.branch.last(tip) or tip[:12]}",
                hint=f"push the later one again; or, if that was meant: {_PARTED}",
            )
        before = self._listing(known if known and self.branch.has(known) else "")
        theirs, here = self._listing(tip), self.names_here()
        self.tip = tip
        for key in sorted({*theirs, *before} - {skip}):
            now, then = theirs.get(key, {}), before.get(key, {})
            if now != then or not here.issuperset(now):
                try:
                    self._take(key, now, then)
                except StateError as error:
                    self.wrong[key] = error

    def _take(self, key: str, theirs: FilesThere, before: FilesThere) -> None:
        """Takes over one home's files unless ours go on from them. Raises StateError naming what is on the branch."""
        if not theirs:
            raise StateMoved(
                f"the files of {key} were taken from the {self.branch.words}: {self.who(key)}",
                hint=f"git revert that commit on the branch; or, if that was meant: {_PARTED}",
            )
        state, journal = self._read(key, theirs)
        ours, parts = self._copy(key), self._parts(key)
        mine, other = b"".join(parts.values()), b"".join(journal.values())
        later = ours is not None and (state is None or (ours.lineage == state.lineage and ours.serial > state.serial))
        if mine.startswith(other) and (len(mine) > len(other) or later):
            return  # ours goes on: what came of a run could not be told yet
        if not other.startswith(mine):
            apart = records(mine[common(mine, other) :], self.folder / journal_file(key))
            if any(r["what"] == "begin" for r in apart):
                raise StateMoved(
                    f"runs here and elsewhere have worked on {key} without knowing of each other; the last one on the "
                    f"{self.branch.words}: {self.who(key)}",
                    hint=_PARTED,
                )
            self._supersede(key)
        elif ours is not None and state is not None and (ours.lineage, ours.serial) != (state.lineage, state.serial):
            was = self._read(key, before)[0] if before else None
            if was is not None and was.lineage == ours.lineage != state.lineage:
                raise StateMoved(
                    f"{key} had lineage {ours.lineage}, and has {state.lineage} on the {self.branch.words}: "
                    f"{self.who(key)}",
                    hint=_PARTED,
                )
            known = {self._agreed(key), f"{was.lineage} {was.serial}" if was is not None else ""}
            if f"{ours.lineage} {ours.serial}" not in known:
                self._supersede(key)
        # State first: a kill in between leaves a journal that is still the beginning of theirs.
        if state is not None:
            self._agree(key, state)
            self._files.write(self.folder / home_file(key), encode(unveiled(state, self._names(key), ours)))
        for name, data in journal.items():
            if parts.get(name) != data:
                self._files.write(self.folder / name, data)
        self._taken(key)

    def _supersede(self, key: str) -> None:
        """What a run of ours did after its intents were told is not known to the branch, where another run has since
        settled them by looking at the home: that counts, and ours is kept beside it."""
        self.put_aside(key)
        why = f"what came of a run here was not told the {self.branch.words}, and another run has settled it"
        self.notes.setdefault(key, []).append(f"{why}: {self.who(key)}")

    def _read(self, key: str, entries: FilesThere) -> tuple[HomeState | None, dict[str, bytes]]:
        """A home's state and journal parts as they are on the branch. Raises StateError for what is not proper."""
        state, journal = None, {}
        for name in sorted(entries, key=order):
            entry, label = entries[name], self._label(name)
            try:
                data = self._content(entry, label)
                if name == home_file(key):
                    state = decode(data, label)
                    if Physical.of(state).key != key:
                        raise StateDamaged(label, f"is the state of another home ({state.harness} at {state.path})")
                else:
                    records(data, label)
                    journal[name] = data
            except StateTooNew:
                raise
            except StateDamaged as error:
                hint = f"git revert that commit on the {self.branch.words}"
                raise StateError(f"{error} ({self.who(key)})", hint=hint) from error
        return state, journal

    def _content(self, entry: Entry, label: Path) -> bytes:
        if entry.kind != "blob" or not entry.mode.startswith("100"):
            raise StateDamaged(label, "is a link or another repository, no file")
        if entry.size > LIMIT:
            raise StateDamaged(label, f"is larger than {LIMIT // 2**20} MiB")
        return self.branch.read(entry)

    # -- giving --------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def sharing(self, key: str, data: bytes, stood: FilesThere | None) -> Iterator[None]:
        """Brings what a run begins with to the branch; on the way out, with `data` in the journal here, our copy is in
        line with that. A kill in between lets the next run take it over."""
        with self.alone():
            tip = self.push(key, data, stood)
            yield
            self.settle(tip)

    def push(self, key: str, extra: bytes = b"", stood: FilesThere | None = None) -> str:
        """Brings the branch in line with our copy of a home, `extra` added to its journal; the branch's last commit
        then. With `stood` the home's files on the branch have to be these still. Raises StateMoved."""
        for _ in range(TRIES):
            there = self.there(key)
            if stood is not None and there != stood:
                raise self._quicker(key)
            commit = self._commit(key, there, extra)
            if not commit:
                return self.tip
            if self.branch.push(commit, self.tip):
                self.tip = commit
                if (ours := self._copy(key)) is not None:
                    self._agree(key, ours)
                return commit
            self._pause(random.uniform(0, PAUSE))
            self.sync(self.branch.tip(), skip=key)
        raise StateError(f"the {self.branch.words} moved {TRIES} times while we wrote to it", hint="run again")

    def _commit(self, key: str, there: FilesThere, extra: bytes) -> str:
        """A commit with our copy of a home, "" if there is nothing to say. Raises StateMoved unless ours goes on from
        what is there."""
        parts, ours, label = self._parts(key), self._copy(key), self._label(journal_file(key))
        if extra:
            parts[journal_file(key)] = parts.get(journal_file(key), b"") + extra
        outgoing = {name: data for name, data in parts.items() if not holds(there.get(name), data)}
        if not outgoing and (ours is None or holds(there.get(home_file(key)), self._seen(key, ours))):
            return ""
        state, journal = self._read(key, there)
        mine, other = b"".join(parts.values()), b"".join(journal.values())
        back = state is not None and (ours is None or ours.lineage != state.lineage or ours.serial < state.serial)
        if back or not mine.startswith(other):
            raise self._quicker(key)
        earlier = records(other, label)
        new = records(mine, label)[len(earlier) :]
        if ours is not None and (state is None or ours.serial != state.serial):
            begun = {r.get("intent"): str(r.get("path", "")) for r in (*earlier, *new) if r["what"] == "begin"}
            touched = {begun.get(r.get("intent"), "") for r in new if r["what"] == "outcome"}
            names = self._names(key)
            outgoing[home_file(key)] = encode(veiled(ours, names, before=state, touched=touched, texts=self._texts))
            if names.new:
                self._files.write(self.folder / "names" / f"{key}.json", json.dumps(names.known).encode())
        if not outgoing:
            return ""
        return self.branch.commit(self.tip, outgoing, message(self._verb, new, earlier))

    def check(self, key: str) -> None:
        """Raises StateError unless the branch, as it is now, has our copy of a home."""
        tip = self.branch.tip()
        self.branch.fetch(tip, self.tip)
        self.tip = tip
        state, journal = self._read(key, self.there(key))
        ours = self._copy(key)
        if journal != self._parts(key) or state is None or ours is None or encode(state) != self._seen(key, ours):
            raise StateError(f"the {self.branch.words} does not have {key} as it was pushed", hint="run it again")

    def _seen(self, key: str, ours: HomeState) -> bytes:
        """Our state as the branch has it if nothing has happened."""
        return encode(veiled(ours, self._names(key), texts=self._texts))

    def _quicker(self, key: str) -> StateMoved:
        return StateMoved(
            f"another runner has written the state of {key} meanwhile: {self.who(key)}", hint="reconciler plan"
        )

    # -- what is there -------------------------------------------------------------------------------------------

    def there(self, key: str) -> FilesThere:
        """A home's files on the branch."""
        return self._listing(self.tip).get(key, {})

    def who(self, key: str) -> str:
        """Who has last written a home's files on the branch, in words."""
        return self.branch.last(self.tip, home_file(key), journal_file(key)) or "nobody says who"

    def _listing(self, commit: str) -> dict[str, FilesThere]:
        """The files of ours at a commit, by home and then by name; what else is on the branch is nobody's."""
        if not commit:
            return {}
        if commit != self._listed[0]:
            found: dict[str, dict[str, Entry]] = {}
            for name, entry in self.branch.files(commit, FOLDERS).items():
                if key := key_of(name):
                    found.setdefault(key, {})[name] = entry
            self._listed = (commit, dict(found))
        return self._listed[1]

    def _label(self, name: str) -> Path:
        return Path(f"{self.branch.name}:{name}")

    # -- what is here --------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """One of this machine's processes (and threads) at a time is between the branch and our copy of it."""
        self._files.mkdir(self.folder)
        try:
            fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StateError(f"{self.folder}: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def known(self) -> str:
        """The branch's commit that our copy is in line with, "" for none."""
        data = self._files.read(self.folder / "synced") or b""
        text = data.decode("ascii", "replace").strip()
        return text if re.fullmatch(r"[0-9a-f]{40,64}", text) else ""

    def settle(self, tip: str) -> None:
        """Our copy is in line with the branch at `tip`; not said while a home's files there are wrong, so that the next
        run looks at them again."""
        if tip and not self.wrong and self.known() != tip:
            self._files.write(self.folder / "synced", tip.encode("ascii") + b"\n")

    def _agree(self, key: str, state: HomeState) -> None:
        """Notes which state of a home our copy and the branch had in common last: another one here is unpushed."""
        self._files.write(self.folder / "agreed" / key, f"{state.lineage} {state.serial}".encode())

    def _agreed(self, key: str) -> str:
        return (self._files.read(self.folder / "agreed" / key) or b"").decode("ascii", "replace")

    def names_here(self) -> set[str]:
        """The homes' files that lie here, by their names on the branch."""
        names = {f"{folder}/{name}" for folder in FOLDERS for name in self._files.names(self.folder / folder)}
        return {name for name in names if key_of(name)}

    def keys_here(self) -> list[str]:
        return sorted({key_of(name) for name in self.names_here()})

    def put_aside(self, key: str) -> None:
        """Copies of a home's files, beside them."""
        for name in (home_file(key), *self._parts(key)):
            self._files.keep(self.folder / name)

    def remove(self, key: str) -> None:
        """Takes our copy of a home away: the next sync takes over what the branch has."""
        for name in (home_file(key), *self._parts(key)):
            self._files.remove(self.folder / name)
        self._files.remove(self.folder / "synced")
        self._taken(key)

    def _copy(self, key: str) -> HomeState | None:
        path = self.folder / home_file(key)
        data = self._files.read(path)
        return None if data is None else decode(data, path)

    def _parts(self, key: str) -> dict[str, bytes]:
        """Our journal of a home, its parts in order, by their names on the branch."""
        names = sorted((n for n in self.names_here() if key_of(n) == key and n != home_file(key)), key=order)
        return {name: self._files.read(self.folder / name) or b"" for name in names}

    def _names(self, key: str) -> Names:
        """The names that we know digests by; without the file they are unknown, as on a new runner."""
        try:
            known: Any = json.loads(self._files.read(self.folder / "names" / f"{key}.json") or b"{}")
        except ValueError:
            known = {}
        pairs = known.items() if isinstance(known, dict) else ()
        return Names({name: digest for name, digest in pairs if isinstance(digest, str)})
