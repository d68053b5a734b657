"""Examples that `--help` ends with; a test holds each line against the command that it calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "init": ("reconciler init --harness native     # a new home of our own in ./home",),
    "adopt": (
        "reconciler adopt ~/agents/home        # a home, into the setup",
        "reconciler adopt clients/*           # several, each under its folder's name",
        "reconciler adopt main/default/jobs   # what is declared, and there already",
    ),
    "copy": ("reconciler copy main --as work --harness native",),
    "plan": (
        "reconciler plan main                 # one home",
        "reconciler plan '*/default/jobs/*'   # the jobs of every home",
        "reconciler plan --out plan.json --report plan.html",
    ),
    "approve": (
        "reconciler approve plan.json 'main/*/jobs/old*'",
        "reconciler approve --list",
    ),
    "apply": (
        "reconciler apply                     # shows the plan, and asks",
        "reconciler apply --plan plan.json --reviewed",
        "reconciler apply '*/secrets/*' --yes # a rotation in every home",
        "reconciler apply --restore main/default/jobs/brief",
    ),
    "provision": ("reconciler provision main",),
    "capture": (
        "reconciler capture main/default/jobs/brief#prompt",
        "reconciler capture '*/default/settings/*'",
    ),
    "release": ("reconciler release main/default/jobs/brief",),
    "status": ("reconciler status 'shop-*'           # the homes whose names begin so",),
    "show": ("reconciler show main/default/jobs/brief#prompt",),
    "history": (
        "reconciler history                   # runs, newest first",
        "reconciler history main/default/jobs # what was done there",
    ),
    "explain": (
        "reconciler explain job.schedule",
        "reconciler explain native",
    ),
    "doctor": ("reconciler doctor main --secrets",),
    "observe": ("reconciler observe --out homes.json",),
}


def epilog(command: str) -> str | None:
    """What a command's help ends with; the mark keeps its lines as they are."""
    lines = EXAMPLES.get(command, ())
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)]) if lines else None
