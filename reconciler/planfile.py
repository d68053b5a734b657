"""Plan files: what a person approved, as row digests (L8). Nothing in one is ever executed.

What binds is per row: its digest. Commit, author, run and serials are provenance, so that the same content under
another commit (a squash merge) is the same plan. The words beside each digest are for the reader.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler_specs.address import Address

from . import outfile
from .action import Action, Row, Tier
from .binding import Bound, block, bound, resolved
from .errors import UsageError
from .plan import HomePlan, Plan, row_digest, sha
from .provenance import Provenance
from .redact import scrub
from .words import would

NAME = "reconciler.planfile"
FORMAT = f"{NAME}/2"
SKEW = 300  # seconds that the clocks of two machines may differ
_NEVER = datetime.min.replace(tzinfo=UTC)
_UNTOLD = Provenance()
WITHIN = 4 * 3600  # seconds that an approval holds, unless policy.confirm_within says otherwise


@dataclass(frozen=True, slots=True)
class ApprovedRow:
    """One row as it was approved. `id` is the harness id, `bound` what it stood on, `would` what it would write, in
    words."""

    address: str
    row: str
    digest: str
    id: str = ""
    would: tuple[str, ...] = ()
    bound: Bound = field(default_factory=Bound)


@dataclass(frozen=True, slots=True)
class ApprovedHome:
    """One home as it was approved: the harness's version, and digests of its own block and of all that the setup
    declared for it (`reconciler.binding`)."""

    id: str
    version: str = ""
    block: str = ""
    resolved: str = ""


@dataclass(frozen=True)
class Approved:
    """A plan file that was read. `rows` are the approved digests, each with its address; `run` tells the run that made
    the file from another one, `actor` is who made it (`reconciler.provenance`); `undo` is the run that the plan undoes,
    "" for none; `path` is where the file was read."""

    rows: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    run: str = ""
    actor: str = ""
    made: datetime = _NEVER
    undo: str = ""
    said: Mapping[str, ApprovedRow] = field(default_factory=dict)
    homes: Mapping[str, ApprovedHome] = field(default_factory=dict)
    path: str = ""

    def standing(self, plan: Plan) -> frozenset[str]:
        """The digests that still approve something: not those of a home whose place, path or door is another now."""
        return frozenset(self.rows) - moved(plan, dict.fromkeys(self.rows, self.blocks)) - misnamed(plan, self.rows)

    @property
    def blocks(self) -> tuple[str, ...]:
        """Digests of the homes' own blocks, sorted."""
        return tuple(sorted({home.block for home in self.homes.values()}))


def again(path: Path | str = "", undo: str = "") -> str:
    """The command that makes a plan file anew: the one at `path`, if that is known."""
    words = ["reconciler", "plan", *(["--undo", undo] if undo else []), "--out", str(path) or "plan.json"]
    return shlex.join(words)


def moved(plan: Plan, blocks: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The row digests of those homes of `plan` whose place, path or door is none of those that a digest was approved
    for (`blocks`: row digest → digests of homes' blocks)."""
    asked = ((d, block(h.ref)) for h in plan.homes for d in (*h.digests.values(), *h.asked))
    return frozenset(digest for digest, now in asked if now not in blocks.get(digest, ()))


def misnamed(plan: Plan, rows: Mapping[str, str]) -> frozenset[str]:
    """Those of `rows` (row digest → address) whose row in `plan` is at another address: a person was shown one thing,
    and the digest is of another. What the setup calls the home may have changed since."""
    found = {digest: address.path for home in plan.homes for address, digest in home.digests.items()}
    found |= {row_digest(home.ref, action): action.address.path for home in plan.homes for action in home.checks}
    return frozenset(d for d, text in rows.items() if d in found and text.partition("/")[2] != found[d])


def write(
    path: Path, plan: Plan, now: datetime, run: str = "", provenance: Provenance = _UNTOLD, undo: str = ""
) -> None:
    """Writes what `plan` asks approval for. 0600, by rename. `run` is the run that made it, if the provenance does
    not say: a plan is no review for the run that made it. `undo` is the run that the plan undoes.

    Raises UsageError, also where something else than a plan file is at `path`: it would be lost.
    """
    known = replace(provenance, run=provenance.run or run)
    text = json.dumps(document(plan, now, known, undo), indent=2, ensure_ascii=True) + "\n"
    outfile.write(path, text, _is_plan, "plan file", again())


def document(plan: Plan, now: datetime, provenance: Provenance = _UNTOLD, undo: str = "") -> dict[str, Any]:
    """The file's content. `content` is a digest over all the rest, so that an edit by hand is told."""
    homes = [home for home in plan.homes if not home.failed]
    body: dict[str, Any] = {
        "format": FORMAT,
        "setup": plan.owner,
        "made": now.astimezone(UTC).isoformat(timespec="seconds"),
        "digest": plan.digest,
        **({"undo": undo} if undo else {}),
        "provenance": provenance.to_json(),
        "homes": [_home(home) for home in homes],
        "rows": [row for home in homes for row in _rows(home)],
    }
    return {**body, "content": _content(body)}


def _home(home: HomePlan) -> dict[str, Any]:
    rows = home.open
    return {
        "home": home.id,
        "harness": home.ref.harness,
        "version": home.version or "",
        "lineage": home.lineage,
        "serial": home.serial,
        "block": block(home.ref),
        "resolved": resolved(home),
        "counts": {
            "rows": len(rows),
            "confirm": sum(1 for a in rows if a.tier is Tier.CONFIRM),
            "delete": sum(1 for a in rows if a.row is Row.DELETE),
            "checks": len(home.checks),
            "unchanged": home.unchanged,
        },
    }


def _rows(home: HomePlan) -> Iterator[dict[str, Any]]:
    for action in home.open:
        yield _row(home, action, str(action.row), home.digests[action.address])
    for action in home.checks:
        yield _row(home, action, "check", row_digest(home.ref, action))


def _row(home: HomePlan, action: Action, row: str, digest: str) -> dict[str, Any]:
    return {
        "address": str(action.address),
        "row": row,
        "id": action.id,
        "tier": str(action.tier),
        "rule": scrub(action.rule),
        "reason": scrub(action.reason),
        "would": would(action),
        "digest": digest,
        "bound": asdict(bound(home, action)),
    }


def _content(body: Mapping[str, Any]) -> str:
    return sha(dict(body))


def _is_plan(data: bytes) -> bool:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and str(document.get("format", "")).startswith(f"{NAME}/")


def read(path: Path, owner: str, now: datetime, within: int = WITHIN) -> Approved:
    """What a plan file approves.

    Raises UsageError for what is not a whole plan file of the setup `owner`, for one that was edited, for one of an
    earlier version, and for one older than `within` seconds.
    """
    document = _parsed(path)
    if document.get("setup") != owner:
        raise UsageError(
            f"{path}: a plan of another setup ({document.get('setup')!r}, this is {owner!r})", hint=again()
        )
    try:
        made = datetime.fromisoformat(str(document.get("made")))
        age = (now - made).total_seconds()
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: says not when it was made", hint=again(path)) from error
    if age < -SKEW:
        raise UsageError(
            f"{path}: made in the future ({document.get('made')}): the clocks of two machines differ", hint=again(path)
        )
    if age > within:
        hours = f"{within / 3600:g} hour(s), policy.confirm_within"
        raise UsageError(f"{path}: the plan is too old to be applied ({hours})", hint=again(path))
    try:
        rows = [_approved_row(row) for row in document["rows"]]
        homes = [
            ApprovedHome(str(h["home"]), str(h["version"]), str(h["block"]), str(h["resolved"]))
            for h in document["homes"]
        ]
        who = {name: str(document["provenance"].get(name, "")) for name in ("run", "actor")}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{path}: its rows are not in proper form", hint=again(path)) from error
    return Approved(
        {row.digest: row.address for row in rows},
        str(document.get("digest", "")),
        who["run"],
        who["actor"],
        made,
        str(document.get("undo", "")),
        {row.address: row for row in rows},
        {home.id: home for home in homes},
        str(path),
    )


def _parsed(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > outfile.LIMIT:
            raise UsageError(f"{path}: too large for a plan file", hint=again())
        document = json.loads(path.read_bytes())
        content = _content({k: v for k, v in document.items() if k != "content"}) if isinstance(document, dict) else ""
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})", hint=again(path)) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a plan file (it is not JSON)", hint=again()) from error
    if not isinstance(document, dict):
        document = {}
    name = str(document.get("format", ""))
    if name != FORMAT:
        if name.startswith(f"{NAME}/"):
            raise UsageError(
                f"{path}: a plan file of another version ({name}; this program reads {FORMAT})", hint=again(path)
            )
        raise UsageError(f"{path}: not a plan file", hint=again())
    if document.get("content") != content:
        raise UsageError(
            f"{path}: was changed since it was written; a plan is approved as it was made", hint=again(path)
        )
    return document


def _approved_row(row: Mapping[str, Any]) -> ApprovedRow:
    stood = row["bound"]
    if any(ord(character) < ord(" ") for character in str(Address.parse(str(row["address"])))):
        raise ValueError("an address is one line")
    return ApprovedRow(
        str(row["address"]),
        str(row["row"]),
        str(row["digest"]),
        str(row["id"]),
        tuple(str(line) for line in row["would"]),
        Bound(str(stood["setup"]), str(stood["home"]), str(stood["state"])),
    )
