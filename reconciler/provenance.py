"""Provenance: which commit a setup is at, and who runs us where; told and recorded, and no part of a digest (L8)."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from reconciler_state.errors import StateError
from reconciler_state.repository import Repository, clean

from .processes import session


@dataclass(frozen=True, slots=True)
class Provenance:
    """Texts, each "" where it is not known.

    `commit` is the full id of the setup's commit, `ref` its branch or tag, `author` and `subject` the commit's;
    `dirty` says that a file of the setup is not as committed. `actor` is who runs us, as the CI system or else the
    operating system says (never a flag), `host` on which machine. `run` tells one run of a pipeline, or one login
    session, from another; `pipeline` is where that run can be looked at.
    """

    commit: str = ""
    ref: str = ""
    author: str = ""
    subject: str = ""
    dirty: bool = False
    actor: str = ""
    host: str = ""
    run: str = ""
    pipeline: str = ""

    def to_json(self) -> dict[str, str | bool]:
        """Only what is known."""
        return {name: value for name, value in asdict(self).items() if value}


def provenance(files: Sequence[Path], environ: Mapping[str, str] = os.environ) -> Provenance:
    """Of a setup made of `files`, its root first. Never fails: what cannot be told is left out."""
    actor, run, pipeline, ref = _who(environ)
    commit = _commit(files)
    return Provenance(
        **{**commit, "ref": ref or str(commit.get("ref", ""))},
        dirty=bool(commit) and _dirty(files),
        actor=actor,
        host=os.uname().nodename,
        run=run,
        pipeline=pipeline,
    )


def _commit(files: Sequence[Path]) -> dict[str, str]:
    if not files:
        return {}
    try:
        repository = Repository.around(files[0].resolve().parent)
        if repository is None:
            return {}
        found = repository.ask("log", "-1", "--no-show-signature", "--format=%H%x00%an%x00%s")
        if found.status:
            return {}  # no commit yet
        ref = repository.ask("symbolic-ref", "--short", "-q", "HEAD").out.strip()
    except StateError:
        return {}
    commit, author, subject = (*found.out.rstrip("\n").split("\0"), "", "")[:3]
    return {"commit": commit, "author": author, "subject": subject, "ref": ref}


def _dirty(files: Sequence[Path]) -> bool:
    repository = Repository(files[0].resolve().parent)
    names = [str(path.resolve()) for path in files]
    try:
        answer = repository.ask("status", "--porcelain", "-z", "--untracked-files=all", "--", *names)
    except StateError:
        return True
    return answer.status != 0 or bool(answer.out)


def _who(environ: Mapping[str, str]) -> tuple[str, str, str, str]:
    """(actor, run, pipeline, ref). The names are those that the CI systems document for their jobs."""
    if environ.get("GITHUB_ACTIONS") == "true":  # Forgejo and Gitea runners set the same names
        number, attempt = environ.get("GITHUB_RUN_ID", ""), environ.get("GITHUB_RUN_ATTEMPT", "1")
        where = f"{environ.get('GITHUB_SERVER_URL', '')}/{environ.get('GITHUB_REPOSITORY', '')}/actions/runs/{number}"
        ref = environ.get("GITHUB_HEAD_REF") or environ.get("GITHUB_REF_NAME", "")
        return environ.get("GITHUB_ACTOR", ""), f"ci {number}.{attempt}" if number else "", clean(where), ref
    if environ.get("GITLAB_CI") == "true":
        number = environ.get("CI_PIPELINE_ID", "")
        ref = environ.get("CI_COMMIT_REF_NAME", "")
        where = clean(environ.get("CI_PIPELINE_URL", ""))
        return environ.get("GITLAB_USER_LOGIN", ""), f"ci {number}" if number else "", where, ref
    return _user(), session(), "", ""


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"
