"""Approvals: who agreed to which rows of a plan and when; one small file `approvals/PLAN.json` per plan digest.

A file is replaced whole, under the folder's lock; what is not in proper form counts for nothing and is named. Where
state is on a branch the files are there (`shared_approvals`), so that who approves and who applies need not be on one
machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from .errors import StateError
from .files import Files

FORMAT: Final = 1
LARGEST: Final = 8 * 2**20  # bytes of one file
_DIGEST: Final = re.compile(r"[0-9a-f]{32}\Z")


@dataclass(frozen=True, slots=True)
class Approval:
    """One act of approving. `rows` are row digests with their addresses; `at` has its zone; `by`, `host`, `run` and
    `pipeline` are of the one who approved, as Provenance has them. `blocks` are digests of the homes' own blocks in the
    setup (place, path, door): what was approved is for homes that are reached so."""

    rows: Mapping[str, str]
    by: str
    host: str
    run: str
    at: datetime
    pipeline: str = ""
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approved:
    """The approvals of one plan."""

    plan: str
    setup: str
    approvals: tuple[Approval, ...]


class Approvals:
    """The approvals in the state folder `root`. Nothing is made there before the first is given."""

    def __init__(self, root: Path, files: Files) -> None:
        self._folder = root / "approvals"
        self._files = files

    def read(self, setup: str) -> tuple[list[Approved], list[str]]:
        """Those of a setup, by plan; and why each file that cannot be read does not count."""
        found: list[Approved] = []
        wrong: list[str] = []
        for name in self.names():
            plan = name.removesuffix(".json")
            if not name.endswith(".json") or not _DIGEST.match(plan):
                continue
            try:
                approved = self._of(plan)
            except StateError as error:
                wrong.append(str(error))
                continue
            if approved is not None and approved.setup == setup:
                found.append(approved)
        return found, wrong

    def add(
        self,
        setup: str,
        plan: str,
        approval: Approval,
        holds: Callable[[Approval], bool],
    ) -> bool:
        """Adds an approval, unless what `holds` of the same one has all of it already: whether it was added. What does
        not hold any more is left out. Raises StateError for digests that are none, and for a file that is not in proper
        form: it is not ours to overwrite."""
        if not all(_DIGEST.match(digest) for digest in (plan, *approval.rows)):
            raise StateError("the plan is known by no digest of ours", hint="reconciler plan --out plan.json")
        with self.alone():
            while True:
                before = self._of(plan)
                if before is not None and before.setup != setup:
                    raise damaged(self.label(plan), f"is of the setup {before.setup!r}, and this is {setup!r}")
                kept = [a for a in (before.approvals if before else ()) if holds(a)]
                same = (a for a in kept if _who(a) == _who(approval))
                if approval.rows.keys() <= {digest for a in same for digest in a.rows}:
                    return False
                if self.put(plan, _encode(Approved(plan, setup, (*kept, approval))), approval):
                    return True

    def _of(self, plan: str) -> Approved | None:
        data = self.content(plan)
        if data is None:
            return None
        try:
            approved = _decode(json.loads(data))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise damaged(self.label(plan), "is not what we wrote") from error
        if approved.plan != plan:
            raise damaged(self.label(plan), "is of another plan than its name says")
        return approved

    # -- where the files are --------------------------------------------------------------------------------------

    def label(self, plan: str) -> Path:
        """What messages call a plan's file."""
        return self._folder / f"{plan}.json"

    def names(self) -> Sequence[str]:
        """The files' names. Raises StateError."""
        return self._files.names(self._folder)

    def content(self, plan: str) -> bytes | None:
        """A plan's file, None if there is none. Raises StateError."""
        if self._files.size(self.label(plan)) > LARGEST:
            raise damaged(self.label(plan), "is too large")
        return self._files.read(self.label(plan))

    def put(self, plan: str, data: bytes, approval: Approval) -> bool:
        """Replaces a plan's file; `approval` is what is new in it. False iff somebody else was quicker."""
        self._files.write(self.label(plan), data)
        return True

    def alone(self) -> AbstractContextManager[None]:
        """One writer of this machine at a time."""
        self._files.mkdir(self._folder)
        return self._files.alone(self._folder)


def _who(approval: Approval) -> tuple[object, ...]:
    return approval.by, approval.host, approval.run, approval.blocks


def damaged(path: Path, why: str) -> StateError:
    return StateError(f"{path}: {why}; it approves nothing", hint="look at it, take it away, and approve again")


def _encode(approved: Approved) -> bytes:
    document = {
        "format": FORMAT,
        "setup": approved.setup,
        "plan": approved.plan,
        "approvals": [
            {
                "by": a.by,
                "host": a.host,
                "run": a.run,
                "pipeline": a.pipeline,
                "at": a.at.isoformat(timespec="seconds"),
                "rows": dict(a.rows),
                "blocks": list(a.blocks),
            }
            for a in approved.approvals
        ],
    }
    return json.dumps(document, indent=1, sort_keys=True).encode("ascii") + b"\n"


def _decode(document: Any) -> Approved:
    """Raises ValueError, KeyError or TypeError for what is not in proper form."""
    if document["format"] != FORMAT or isinstance(document["format"], bool):
        raise ValueError
    _texts((document["setup"], document["plan"]))
    return Approved(document["plan"], document["setup"], tuple(_approval(a) for a in _list(document["approvals"])))


def _approval(record: Any) -> Approval:
    rows, at = record["rows"], datetime.fromisoformat(record["at"])
    if not isinstance(rows, dict) or at.tzinfo is None or not all(_DIGEST.match(digest) for digest in rows):
        raise ValueError
    blocks = tuple(_list(record["blocks"]))
    _texts((*rows.values(), *blocks, record["by"], record["host"], record["run"], record["pipeline"]))
    return Approval(rows, record["by"], record["host"], record["run"], at, record["pipeline"], blocks)


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _texts(values: Iterable[Any]) -> None:
    if not all(isinstance(value, str) for value in values):
        raise TypeError
