"""A git repository, called so that nothing in it is run; the only module that knows GitPython.

The state on a branch (`reconciler_state`) and the setup's own repository (`reconciler.provenance`) are both read and
written through it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .errors import StateError

TIMEOUT: Final = 120.0  # seconds that one call of git may take
# What a repository, or a URL in a setup, could make git start. Credentials and signing stay as the person set them up.
_OFF: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
# Whatever a caller (a hook, another git) has set for its own repository is not ours.
_ENV: Final = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
_FOREIGN: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
)


class GitError(StateError):
    """A call of git that ended with an error. `status` is git's exit code; `said` its own last line, without URLs'
    credentials."""

    def __init__(self, what: str, status: int, said: str) -> None:
        super().__init__(f"git {what}: {said or f'ended with {status}'}")
        self.status = status
        self.said = said


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call of git gave: its exit code and its two outputs, as text."""

    status: int
    out: str
    error: str


class Repository:
    """The repository whose folder (work tree or bare) is `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def around(cls, folder: Path) -> Repository | None:
        """The repository whose work tree `folder` is in; None if it is in none (or git is not installed)."""
        if not any((parent / ".git").exists() for parent in (folder, *folder.parents)):
            return None  # asked without starting git: most setups are in no repository
        try:
            answer = cls(folder).ask("rev-parse", "--show-toplevel")
        except GitError:
            return None
        return cls(Path(answer.out.rstrip("\n"))) if answer.status == 0 and answer.out.strip() else None

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """The output of a call that must not fail, without its last line break. Raises GitError."""
        answer = self.ask(*words, env=env)
        if answer.status:
            raise GitError(words[0], answer.status, _last_line(answer.error))
        return answer.out.removesuffix("\n")

    def ask(self, *words: str, env: Mapping[str, str] | None = None, seconds: float = TIMEOUT) -> Answer:
        """The answer of a call, whatever its exit code. Raises GitError if git is not there or does not end."""
        foreign = [part for name in _FOREIGN if name in os.environ for part in ("-u", name)]
        argv = [*(["env", *foreign] if foreign else []), "git", *(p for off in _OFF for p in ("-c", off)), *words]
        # GitPython looks for git when it is imported, and raises if there is none: the call says it better.
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
        import git

        try:
            status, out, error = git.Git(self.root).execute(
                argv,
                with_extended_output=True,
                with_exceptions=False,
                strip_newline_in_stdout=False,
                env={**_ENV, **(env or {})},
                kill_after_timeout=seconds,
            )
        except (git.exc.GitCommandNotFound, FileNotFoundError, NotADirectoryError) as problem:
            raise GitError(words[0], 127, f"cannot be started in {self.root}") from problem
        return Answer(int(status), _text(out), _text(error))


def _text(data: object) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return clean(lines[-1]) if lines else ""


def clean(text: str) -> str:
    """Text of git with what stands before the `@` of a URL taken out: it may be a credential."""
    return re.sub(r"(\w+://)[^/@\s]+@", r"\1", text)


def words(output: str) -> Sequence[str]:
    """The NUL-separated parts of an output (`-z`)."""
    return [part for part in output.split("\0") if part]
