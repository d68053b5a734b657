"""State that several runners share through a git branch: a local store, kept in line with the branch.

A run reads and writes this machine's copy, with the journal's fsync for every step. What it is about to do goes to the
branch before its first write, and what came of it after the last; each by a plain push, which is the compare-and-swap.
Of two runners on one home the second one stops before it writes; other homes' files merge by file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from .approvals import Approvals
from .branch import Branch
from .errors import StateError, StateMoved
from .files import Files
from .journal import Journal
from .layout import FilesThere
from .local import LocalStore, Repair
from .mirror import Mirror
from .record import HomeState
from .shared_approvals import SharedApprovals
from .store import Physical


class SharedStore(LocalStore):
    """A StateStore whose homes and journals are on a branch too.

    `folder` is this machine's copy, `root` the state folder with keys, locks and holders. `verb` is a word
    for the commits. What is wrong with one home's files on the branch stops that home; a branch that cannot be read, or
    that went back, stops all.
    """

    shared = True

    def __init__(
        self,
        root: Path,
        branch: Branch,
        folder: Path,
        files: Files | None = None,
        *,
        verb: str = "apply",
        texts: bool = True,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(root, files, folder)
        self.branch = branch
        self._texts = texts
        self.mirror = Mirror(branch, folder, self.files, verb=verb, texts=texts, taken=self._forget, pause=pause)
        self._looked: StateError | bool = False  # whether the branch was looked at, and what was wrong with it
        self._stood: dict[str, FilesThere] = {}  # a locked home's files on the branch, as its run found them

    @property
    def where(self) -> str:
        return self.branch.words

    def read(self, physical: Physical) -> HomeState | None:
        """As LocalStore.read. Raises StateError where the branch, or this home on it, cannot be relied on."""
        self._once()
        if physical.key in self.mirror.wrong:
            raise self.mirror.wrong[physical.key]
        found = super().read(physical)
        kept = self.root / "homes" / f"{physical.key}.json"
        if found is None and self.files.size(kept):
            raise StateError(
                f"the state of {physical.path} is on this machine ({kept}), and not on the {self.where}",
                hint="reconciler state migrate --to git",
            )
        return found

    def journal(self, physical: Physical) -> Journal:
        self._once()

        def share(data: bytes) -> AbstractContextManager[None]:
            return self.mirror.sharing(physical.key, data, self._stood.get(physical.key))

        return Journal.of(self.folder, physical, self.files, share, self._texts)

    def approvals(self) -> Approvals:
        return SharedApprovals(self.root, self.files, self.branch, self.mirror)

    def _all(self, skip: Collection[str] = ()) -> Iterator[HomeState | StateError]:
        self._once()
        yield from super()._all({*skip, *(f"{key}.json" for key in self.mirror.wrong)})

    def broken(self) -> Sequence[StateError]:
        self._once()
        return [*super().broken(), *self.mirror.wrong.values()]

    def notes(self, physical: Physical) -> Sequence[str]:
        return self.mirror.notes.get(physical.key, ())

    def _once(self) -> None:
        """Looks at the branch the first time that somebody asks; a failure is told each time, and met once."""
        if isinstance(self._looked, StateError):
            raise self._looked
        if not self._looked:
            try:
                self.refresh()
            except StateError as error:
                self._looked = error
                raise

    def _forget(self, key: str) -> None:
        for known in [p for p in self._last if p.key == key]:
            del self._last[known]
            self._ours.discard(known)

    # -- with the branch -----------------------------------------------------------------------------------------

    def refresh(self, physical: Physical | None = None) -> None:
        """Raises StateError if the branch cannot be read, StateMoved if it is not the one that we know any more."""
        tip = self.branch.tip()
        there: FilesThere = {}
        if tip or self.folder.exists():
            with self.mirror.alone():
                self.mirror.sync(tip)
                self.mirror.settle(tip)
                there = self.mirror.there(physical.key) if physical is not None else {}
        self._looked = True
        if physical is not None:
            self._stood[physical.key] = there

    def publish(self, physical: Physical) -> None:
        with self.mirror.alone():
            self.mirror.settle(self.mirror.push(physical.key))

    def catch_up(self) -> None:
        self._once()
        if self.folder.exists():
            with self.mirror.alone():
                for key in self.mirror.keys_here():
                    if key not in self.mirror.wrong:
                        self.mirror.settle(self.mirror.push(key))

    def put(self, physical: Physical, files: Mapping[str, bytes]) -> None:
        """As LocalStore.put, and on the branch."""
        self._once()
        with self.mirror.alone():
            super().put(physical, files)
            self.mirror.settle(self.mirror.push(physical.key))
            self.mirror.check(physical.key)

    # -- when the two have parted --------------------------------------------------------------------------------

    def repair(self, home: str | None = None, *, do: bool) -> Repair:
        """As LocalStore.repair. Where this machine's copy and the branch have parted, ours is put aside as a whole, and
        the branch counts as it is."""
        try:
            self._once()
            parted = {key: error for key, error in self.mirror.wrong.items() if isinstance(error, StateMoved)}
            found = super().repair(home, do=do)
            found.left.extend(f"left as it is: {e}" for key, e in self.mirror.wrong.items() if key not in parted)
        except StateMoved as error:
            parted = dict.fromkeys(self.mirror.keys_here(), error)
            found = Repair([], [])
        found.aside.extend(dict.fromkeys(f"put aside: this machine's copy: {error}" for error in parted.values()))
        for key in sorted(parted) if do else ():
            self.mirror.put_aside(key)
            self.mirror.remove(key)
            self._looked = False
        return found
