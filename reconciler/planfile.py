"""Plan files: what a person approved, as row digests (L8). Nothing in one is ever executed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from .errors import UsageError
from .plan import Plan

FORMAT = "reconciler.planfile/1"
LIMIT = 64 * 1024 * 1024


def write(path: Path, plan: Plan) -> None:
    """Writes the plan's row digests, with words beside each for the reader. 0600, by rename. Raises UsageError."""
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
    document = {"format": FORMAT, "setup": plan.owner, "digest": plan.digest, "rows": rows}
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


def read(path: Path, owner: str) -> frozenset[str]:
    """The approved row digests. Raises UsageError for what is not a plan file of the setup `owner`."""
    try:
        if path.stat().st_size > LIMIT:
            raise UsageError(f"{path}: too large for a plan file")
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a plan file (it is not JSON)", hint=f"reconciler plan --out {path}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise UsageError(f"{path}: not a plan file of this version", hint=f"reconciler plan --out {path}")
    if document.get("setup") != owner:
        raise UsageError(f"{path}: a plan of another setup ({document.get('setup')!r}, this is {owner!r})")
    rows = document.get("rows")
    if not isinstance(rows, list) or not all(isinstance(r, dict) and isinstance(r.get("digest"), str) for r in rows):
        raise UsageError(f"{path}: its rows are not in proper form", hint=f"reconciler plan --out {path}")
    return frozenset(r["digest"] for r in rows)
