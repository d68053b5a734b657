"""Approvals on the state's branch: given on one machine, used on another. Who may push there may approve."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from .approvals import LARGEST, Approval, Approvals, damaged
from .branch import Branch, Entry
from .errors import StateError
from .files import Files
from .message import plain
from .mirror import TRIES, Mirror

FOLDER: Final = "approvals"


class SharedApprovals(Approvals):
    """The approvals on `branch`, as `mirror` has seen it last, or to add to them as it is now; none is kept here."""

    def __init__(self, root: Path, files: Files, branch: Branch, mirror: Mirror) -> None:
        super().__init__(root, files)
        self._branch = branch
        self._mirror = mirror
        self._tip = ""
        self._entries: dict[str, Entry] | None = None
        self._tried = 0
        self._adding = False

    def _listed(self) -> dict[str, Entry]:
        if self._entries is None:
            self._tip = self._branch.tip() if self._adding or not self._mirror.tip else self._mirror.tip
            if self._tip:
                self._branch.fetch(self._tip, self._mirror.known())
            found = self._branch.files(self._tip, [FOLDER])
            self._entries = {name.removeprefix(f"{FOLDER}/"): entry for name, entry in found.items()}
        return self._entries

    def names(self) -> Sequence[str]:
        return sorted(self._listed())

    def label(self, plan: str) -> Path:
        return Path(f"{self._branch.name}:{FOLDER}/{plan}.json")

    def content(self, plan: str) -> bytes | None:
        entry = self._listed().get(f"{plan}.json")
        if entry is None:
            return None
        if entry.kind != "blob" or not entry.mode.startswith("100"):
            raise damaged(self.label(plan), "is a link or another repository, no file")
        if entry.size > LARGEST:
            raise damaged(self.label(plan), "is too large")
        return self._branch.read(entry)

    def put(self, plan: str, data: bytes, approval: Approval) -> bool:
        """Raises StateError where the branch cannot be written, or moves on all the time."""
        rows = "\n".join(sorted(approval.rows.values()))
        who = f"{approval.by or 'somebody'} on {approval.host}"
        said = plain(f"approve {len(approval.rows)} row(s) of plan {plan}\n\n{rows}\n\nBy: {who}\n")
        commit = self._branch.commit(self._tip, {f"{FOLDER}/{plan}.json": data}, said)
        done = self._branch.push(commit, self._tip)
        self._entries = None
        self._tried += 1
        if not done and self._tried >= TRIES:
            raise StateError(f"the {self._branch.words} moved {TRIES} times while we wrote to it", hint="run again")
        return done

    def alone(self) -> AbstractContextManager[None]:
        self._entries, self._adding = None, True
        return self._mirror.alone()
