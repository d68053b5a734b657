"""What a draft can say of where its jobs' context comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler_specs.job import rings

SELF = "self"
"""The word in `context_from` for the job itself."""


def in_keys(refs: Sequence[str], own: str, keys: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Harness ids as the keys of jobs, with `self` for the job's `own`; and those that are no job's here."""
    said = {**keys, own: SELF, SELF: SELF}
    return [said.get(ref, ref) for ref in refs], [ref for ref in refs if ref not in said]


def unsayable(jobs: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[tuple[str, ...], str]]:
    """The jobs whose `context_from` no setup could be loaded with: what it names, and why."""
    sources = {key: [ref for ref in job.get("context_from", ()) if ref != SELF] for key, job in jobs.items()}
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for key, refs in sources.items():
        gone = tuple(ref for ref in refs if ref not in jobs)
        if gone:
            found[key] = gone, f"it names what is not here: {', '.join(gone)}"
    for ring in rings({key: refs for key, refs in sources.items() if refs and key not in found}):
        why = f"a ring, {' → '.join((*ring, ring[0]))}"
        found.update({key: (tuple(sources[key]), why) for key in ring})
    return found
