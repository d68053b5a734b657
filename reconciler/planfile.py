"""Plan files: what a person approved, as row digests (L8). Nothing in one is ever executed."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from .errors import UsageError
from .plan import Plan, row_digest

FORMAT = "reconciler.planfile/1"
LIMIT = 64 * 1024 * 1024
SKEW = 300  # seconds that the clocks of two machines may differ
WITHIN = 4 * 3600  # seconds that an approval holds, unless policy.confirm_within says otherwise


def write(path: Path, plan: Plan, now: datetime, run: str = "") -> None:
    """Writes the plan's row digests, with words beside each for the reader. 0600, by rename. `run` is the run that made
    the plan (Provenance.run): a plan is no review for the run that made it.

    Raises UsageError, also where something else than a plan file is at `path`: it would be lost.
    """
    _check_free(path)
    rows = [
        {
            "address": str(action.address),
            "row": str(action.row),
            "tier": str(action.tier),
            "reason": action.reason or action.rule,
            "digest": home.digests[action.address],
        }
        for home in plan.homes
        for action in home.open
    ]
    rows += [
        {
            "address": str(action.address),
            "row": "check",
            "tier": "confirm",
            "reason": action.reason,
            "digest": row_digest(home.ref, action),
        }
        for home in plan.homes
        for action in home.checks
    ]
    made = now.astimezone(UTC).isoformat(timespec="seconds")
    document = {"format": FORMAT, "setup": plan.owner, "made": made, "digest": plan.digest, "run": run, "rows": rows}
    text = json.dumps(document, indent=2, ensure_ascii=True) + "\n"
    try:
        handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error


def _check_free(path: Path) -> None:
    """A new file, an empty one (mktemp's), or an earlier plan."""
    again = "reconciler plan --out plan.json"
    try:
        there = path.stat(follow_symlinks=False)
        if stat.S_ISREG(there.st_mode) and (there.st_size == 0 or _is_plan(path, there.st_size)):
            return
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error
    raise UsageError(f"{path} is there, and is no plan file: it would be lost", hint=again)


def _is_plan(path: Path, size: int) -> bool:
    try:
        document = json.loads(path.read_bytes()) if size <= LIMIT else None
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and str(document.get("format", "")).startswith(FORMAT.partition("/")[0])


def read(path: Path, owner: str, now: datetime, within: int = WITHIN) -> Mapping[str, str]:
    """The approved row digests, each with the address that it was for.

    Raises UsageError for what is not a plan file of the setup `owner`, or for one older than `within` seconds.
    """
    try:
        if path.stat().st_size > LIMIT:
            raise UsageError(f"{path}: too large for a plan file")
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a plan file (it is not JSON)", hint="reconciler plan --out plan.json") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f"{path}: not a plan file of this version", hint="reconciler plan --out plan.json")
    if document.get("setup") != owner:
        raise UsageError(f"{path}: a plan of another setup ({document.get('setup')!r}, this is {owner!r})")
    try:
        age = (now - datetime.fromisoformat(str(document.get("made")))).total_seconds()
    except (ValueError, TypeError) as error:
        raise UsageError(f"{path}: says not when it was made", hint=f"reconciler plan --out {path}") from error
    if age < -SKEW:
        raise UsageError(
            f"{path}: made in the future ({document.get('made')}): the clocks of two machines differ, or it was edited",
            hint=f"reconciler plan --out {path}",
        )
    if age > within:
        hours = f"{within / 3600:g} hour(s), policy.confirm_within"
        raise UsageError(f"{path}: the plan is too old to be applied ({hours})", hint=f"reconciler plan --out {path}")
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(
        isinstance(r, dict) and isinstance(r.get("digest"), str) and isinstance(r.get("address"), str) for r in rows
    ):
        raise UsageError(f"{path}: its rows are not in proper form", hint=f"reconciler plan --out {path}")
    return {r["digest"]: r["address"] for r in rows}
