"""What each Hermes version can store; a declared field that it cannot is an error at plan time (L15)."""

from __future__ import annotations

import re

TESTED = ("0.16", "0.18", "0.19")
NEWEST = "0.19"

_NEEDS = {
    # field → (the first version that stores it, "" where no tested one does; what to do instead)
    "session": ("0.18", ""),
    "failure_deliver": ("", "a job's failures go where its output goes"),
    "monitor": ("", "let `before:` name a script that looks, and the prompt say what to do with its output"),
    "id": ("", "Hermes draws the ids itself"),
    "metadata": ("", ""),
}
_LABELS = {
    "failure_deliver": "separate target for failures",
    "monitor": "monitor per job",
    "id": "id of the author's choice",
    "metadata": "metadata per job",
    "session": "choice of session per job",
}


def series(version: str | None) -> str:
    """`0.19.0` → `0.19`, "" if it cannot be told."""
    match = re.match(r"(\d+)\.(\d+)", version or "")
    return f"{match[1]}.{match[2]}" if match else ""


def supported(version: str | None) -> str:
    """ "" if this version is tested, else why the home is plan-only."""
    if version is None:
        return "Hermes's version cannot be told: no interpreter with hermes-agent was found (door: {python: PATH})"
    if series(version) in TESTED:
        return ""
    return f"Hermes {version} is not tested (tested: {', '.join(TESTED)})"


def missing(field: str, version: str | None) -> str:
    """Why this version cannot store a job's `field`, "" if it can."""
    if field not in _NEEDS:
        return ""
    first, instead = _NEEDS[field]
    ours = series(version) or NEWEST
    if first and _number(ours) >= _number(first):
        return ""
    words = f"Hermes {ours} has no {_LABELS[field]}"
    if first:
        return f"{words} (needs {first} or later)"
    return f"{words}: {instead}" if instead else words


def snapshots(version: str | None) -> bool:
    """Whether jobs remember the model they were made under, and stop when it changes (0.18 on)."""
    return _number(series(version) or NEWEST) >= _number("0.18")


def routes(version: str | None) -> str:
    """Why this version has no routes between profiles, "" if it has (0.19 on)."""
    ours = series(version) or NEWEST
    return "" if _number(ours) >= _number("0.19") else f"Hermes {ours} has no routes (needs 0.19 or later)"


def _number(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def limits() -> list[str]:
    """What no tested version, or only a later one, can store of a job: a line each."""
    lines = [f"tested versions: {', '.join(TESTED)}; another one is plan-only until --allow unknown-version"]
    lines += [
        "channels: one account each; a credential is the usual variable of .env (Hermes expands no ${NAME} there)",
        "routes: from 0.19 on, in the default profile only, by channel, guild, chat and thread",
        "webhooks deliver: no owner_chat; `{to: CHANNEL}` is that channel's home chat",
    ]
    for field, (first, instead) in _NEEDS.items():
        when = f"from {first} on" if first else "in no tested version"
        lines.append(f"jobs {field}: {when}" + (f"; {instead}" if instead else ""))
    lines.append(
        "planning_kits: boards of the profile default, the key their slug; statuses are Hermes's own (degrade)"
    )
    return lines
