"""The `Reviewed-plan: DIGEST` trailer of the setup's commit: a review that came with the merge.

A commit made by the run that applies would be its own review. So it counts only where it was made before: in a pipeline
the commit must be the one that the run was started for; for the loop one that it has fetched; elsewhere one that a
remote has, and that is older than the login session: a push of one's own tells git that the remote has it, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler_state.errors import StateError
from reconciler_state.repository import Repository

from .processes import session_began

TRAILER = "Reviewed-plan"
_DIGEST = re.compile(r"[0-9a-f]{32}\Z")
# What the CI systems call the commit that a run is for.
_STARTED_FOR = (("GITHUB_ACTIONS", "GITHUB_SHA"), ("GITLAB_CI", "CI_COMMIT_SHA"))
_TIP = "refs/worktree/reconciler/tip"
"""The tip that the loop follows (gitops.source.TIP): only ever written by its fetch."""


@dataclass(frozen=True, slots=True)
class Trailer:
    """The plan digests that HEAD names, its commit id, and why they do not count ("" if they do)."""

    digests: tuple[str, ...] = ()
    commit: str = ""
    why: str = ""


def of_head(
    setup: Path, environ: Mapping[str, str] = os.environ, began: Callable[[], float] = session_began
) -> Trailer:
    """Of the commit that the setup file stands on; an empty Trailer where there is none. `began` gives the moment, in
    seconds since the epoch, before which a commit is of another run; 0.0 for unknown."""
    try:
        repository = Repository.around(setup.resolve().parent)
        if repository is None:
            return Trailer()
        form = f"--format=%H%x00%(trailers:key={TRAILER},valueonly,separator=%x00)"
        found = repository.ask("log", "-1", "--no-show-signature", form)
        commit, *values = found.out.rstrip("\n").split("\0")
        digests = tuple(v.strip() for v in values if _DIGEST.match(v.strip()))
        if found.status or not digests:
            return Trailer()
        return Trailer(digests, commit, _own(repository, commit, environ, began))
    except StateError as error:
        return Trailer(why=str(error))


def _own(repository: Repository, commit: str, environ: Mapping[str, str], began: Callable[[], float]) -> str:
    """Why a commit may be of this very run, "" if it cannot be."""
    for system, name in _STARTED_FOR:
        if environ.get(system) == "true":
            return "" if environ.get(name) == commit else f"it is not the commit that this run was started for ({name})"
    if _in(repository, commit, _TIP):
        return ""
    if not _in(repository, commit, "refs/remotes"):
        return "it was not fetched from a remote: it may be of this run"
    made = repository.ask("log", "-1", "--no-show-signature", "--format=%ct", commit).out.strip()
    if made.isdigit() and int(made) < began():
        return ""
    return "it is not older than this login session: it may be of this run"


def _in(repository: Repository, commit: str, refs: str) -> bool:
    there = repository.ask("for-each-ref", "--contains", commit, "--count=1", refs)
    return there.status == 0 and bool(there.out.strip())
