"""The `Reviewed-plan: DIGEST` trailer of the setup's commit: a review that came with the merge.

A commit made by the run that applies would be its own review. So it counts only where it was made before: in a pipeline
the commit must be the one that the run was started for, elsewhere one that was fetched from a remote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler_state.errors import StateError
from reconciler_state.repository import Repository

TRAILER = "Reviewed-plan"
_DIGEST = re.compile(r"[0-9a-f]{32}\Z")
# What the CI systems call the commit that a run is for.
_STARTED_FOR = (("GITHUB_ACTIONS", "GITHUB_SHA"), ("GITLAB_CI", "CI_COMMIT_SHA"))
# What is only ever written by a fetch: remote-tracking branches, and the tip that the loop follows (gitops.source.TIP).
_FETCHED = ("refs/remotes", "refs/worktree/reconciler/tip")


@dataclass(frozen=True, slots=True)
class Trailer:
    """The plan digests that HEAD names, its commit id, and why they do not count ("" if they do)."""

    digests: tuple[str, ...] = ()
    commit: str = ""
    why: str = ""


def of_head(setup: Path, environ: Mapping[str, str] = os.environ) -> Trailer:
    """Of the commit that the setup file stands on; an empty Trailer where there is none."""
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
        return Trailer(digests, commit, _own(repository, commit, environ))
    except StateError as error:
        return Trailer(why=str(error))


def _own(repository: Repository, commit: str, environ: Mapping[str, str]) -> str:
    """Why a commit may be of this very run, "" if it cannot be."""
    for system, name in _STARTED_FOR:
        if environ.get(system) == "true":
            return "" if environ.get(name) == commit else f"it is not the commit that this run was started for ({name})"
    there = repository.ask("for-each-ref", "--contains", commit, "--count=1", *_FETCHED)
    return "" if there.status == 0 and there.out.strip() else "it was not fetched from a remote: it may be of this run"
