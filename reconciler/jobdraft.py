"""What a draft can say of a job: its key, where its context comes from, and what has to stay out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from reconciler_specs.job import rings
from reconciler_specs.values import NAME

from .observe import Observed, Unknown
from .redact import has_hidden, is_hidden

SELF = "self"
"""The word in `context_from` for the job itself."""


def in_keys(refs: Sequence[str], own: str, keys: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Harness ids as the keys of jobs, with `self` for the job's `own`; and those that are no job's here."""
    said = {**keys, own: SELF, SELF: SELF}
    return [said.get(ref, ref) for ref in refs], [ref for ref in refs if ref not in said]


def unfed(jobs: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[tuple[str, ...], str]]:
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


def cannot_stand(job: Mapping[str, Any], thing: Observed) -> str:
    """E46: why a job cannot be declared, "" if it can."""
    if thing.about.get("foreign"):
        return str(thing.about["foreign"])
    if not job.get("run") and is_hidden(thing.get("prompt")):
        return "its prompt holds a secret in the clear"
    if "schedule" not in job:
        return "its schedule cannot be said in a setup"
    if not job.get("run") and not job.get("prompt"):
        return "it has no prompt and no script that a setup could say"
    return ""


def unsaid(job: Mapping[str, Any], thing: Observed) -> list[str]:
    """E46: which fields of a job that is declared stay as they are, and why."""
    left = {name: value for name, value in thing.fields.items() if name not in job}
    unknown = [name for name, value in left.items() if isinstance(value, Unknown)]
    secret = [name for name, value in left.items() if has_hidden(value)]
    odd = [name for name, value in left.items() if isinstance(value, dict) and "$native" in value]
    found = [
        (unknown, "cannot be read"),
        (secret, "holds a secret in the clear, which stays out"),
        (odd, "cannot be said in a setup; it stays as it is"),
    ]
    return [f"{', '.join(names)} {why}" for names, why in found if names]


def key_of(name: str, taken: Collection[str]) -> str:
    """A key from a thing's name: what a person would type, and unique in its profile."""
    stem = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-._")[:48] or "job"
    key, number = stem, 2
    while key in taken or key == SELF or not NAME.match(key):
        key, number = f"{stem}-{number}", number + 1
    return key
