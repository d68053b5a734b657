"""A git repository, called so that nothing in it is run; the only module that knows GitPython.

The state on a branch (`reconciler_state`) and the setup's own repository (`reconciler.provenance`) are both read and
written through it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final, cast

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
    """A call of git that ended with an error. `status` is git's exit code; `said` what it says is wrong, without
    URLs' credentials."""

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

    def run(self, *words: str, env: Mapping[str, str] | None = None, given: bytes | None = None) -> str:
        """The output of a call that must not fail, without its last line break. `given` is its input. Raises
        GitError."""
        answer = self.ask(*words, env=env, given=given)
        if answer.status:
            raise GitError(words[0], answer.status, gist(answer.error))
        return answer.out.removesuffix("\n")

    def ask(
        self,
        *words: str,
        env: Mapping[str, str] | None = None,
        seconds: float = TIMEOUT,
        given: bytes | None = None,
    ) -> Answer:
        """The answer of a call, whatever its exit code. Raises GitError if git is not there or does not end."""
        with ExitStack() as open_:
            source = None
            if given is not None:
                source = cast(BinaryIO, open_.enter_context(TemporaryFile()))
                source.write(given)
                source.seek(0)
            status, out, error = self._call(words, env or {}, seconds, source)
        return Answer(status, out.decode("utf-8", "replace"), error)

    def content(self, *words: str, env: Mapping[str, str] | None = None) -> bytes:
        """The output of a call that must not fail, as it is. Raises GitError."""
        status, out, error = self._call(words, env or {}, TIMEOUT, None)
        if status:
            raise GitError(words[0], status, gist(error))
        return out

    def _call(
        self, words: Sequence[str], env: Mapping[str, str], seconds: float, given: BinaryIO | None
    ) -> tuple[int, bytes, str]:
        # What the caller of this call has set is its own; what stands in our environment is another repository's.
        foreign = [part for name in _FOREIGN if name in os.environ and name not in env for part in ("-u", name)]
        argv = [*(["env", *foreign] if foreign else []), "git", *(p for off in _OFF for p in ("-c", off)), *words]
        # GitPython looks for git when it is imported, and raises if there is none: the call says it better.
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
        import git

        try:
            answer: Any = git.Git(self.root).execute(
                argv,
                with_extended_output=True,
                with_exceptions=False,
                strip_newline_in_stdout=False,
                stdout_as_string=False,
                istream=given,
                env={**_ENV, **env},
                kill_after_timeout=seconds,
            )
        except (git.exc.GitCommandNotFound, FileNotFoundError, NotADirectoryError) as problem:
            raise GitError(words[0], 127, f"cannot be started in {self.root}") from problem
        status, out, error = answer
        return int(status), out if isinstance(out, bytes) else str(out).encode(), _text(error)


def _text(data: object) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data)


def gist(text: str) -> str:
    """Of all that git said the line that says what is wrong, without what may be a credential; "" if there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = (line for line in lines if line.startswith(("fatal: ", "error: ")))
    return clean(next(wrong, lines[-1])) if lines else ""


def clean(text: str) -> str:
    """Text of git with what stands before the `@` of a URL taken out: it may be a credential."""
    return re.sub(r"(\w+://)[^/@\s]+@", r"\1", text)


def words(output: str) -> Sequence[str]:
    """The NUL-separated parts of an output (`-z`)."""
    return [part for part in output.split("\0") if part]
