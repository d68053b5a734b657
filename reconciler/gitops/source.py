"""Source: the branch that a setup comes from, and the loop's own work tree of it; no person's checkout is touched."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from reconciler_specs.errors import Reason, SpecError, Where
from reconciler_state.repository import GitError, Repository

from ..errors import UsageError
from ..redact import scrub

# A ref of the loop's work tree alone: neither a branch nor a remote-tracking ref of the person's moves.
TIP = "refs/worktree/reconciler/tip"
# A branch that sets up no tracking says so by an empty name.
_UPSTREAM = "%(upstream:remotename)%00%(upstream:remoteref)"


@dataclass(frozen=True, slots=True)
class Source:
    """A setup in a git checkout, and the branch that is followed.

    `checkout` is the person's; `inside` the setup file's path from its top. `remote` is the name of one of its
    remotes ("." for the checkout itself), `branch` the branch's name there. `tree` is the loop's work tree.
    """

    checkout: Repository
    inside: Path
    remote: str
    branch: str
    tree: Repository

    @classmethod
    def of(cls, setup: Path, folder: Path, remote: str = "", branch: str = "") -> Source:
        """The source of the setup file `setup`; the loop's files are kept in a part of `folder`.

        Without `remote` and `branch` they are those that the branch which is checked out has as its upstream.
        Raises UsageError where git does not tell.
        """
        real = Path(os.path.realpath(setup))
        checkout = Repository.around(real.parent)
        if checkout is None:
            raise UsageError(f"{setup} is in no git checkout", hint="git clone the repository that it is in")
        remotes = checkout.run("remote").splitlines()
        if remote and remote not in remotes:
            raise UsageError(f"--remote {remote}: no such remote", hint=f"remotes: {', '.join(remotes) or 'none'}")
        if branch and checkout.ask("check-ref-format", f"refs/heads/{branch}").status:
            raise UsageError(f"--branch {branch}: no name of a branch")
        if not (remote and branch):
            remote, branch = _upstream(checkout, remotes, remote, branch)
        inside = real.relative_to(Path(os.path.realpath(checkout.root)))
        key = hashlib.sha256("\0".join([str(checkout.root), str(inside), remote, branch]).encode()).hexdigest()[:16]
        return cls(checkout, inside, remote, branch, Repository(folder / f"{real.parent.name[:40]}-{key}" / "tree"))

    @property
    def folder(self) -> Path:
        """Where the loop keeps what it remembers of this source."""
        return self.tree.root.parent

    @property
    def setup(self) -> Path:
        """The setup file in the loop's work tree. Raises SpecError for one that is somewhere else, by a link in the
        commit: what this machine keeps outside of it is nothing to read, or to show, as a setup (L18)."""
        path = self.tree.root / self.inside
        if os.path.realpath(path) != str(Path(os.path.realpath(self.tree.root)) / self.inside):
            where = Where(str(path))
            raise SpecError([Reason(where, "it is a link, or is reached through one", "commit the file itself")])
        return path

    @property
    def stands(self) -> Path:
        """The person's folder of the setup: relative paths of homes are from there."""
        return (self.checkout.root / self.inside).parent

    def _remotely(self, *words: str) -> str:
        """A call about the remote: made from the person's checkout, as a relative URL is from there, and for the loop's
        work tree, whose refs and HEAD are its own."""
        return self.checkout.run(*words, env={"GIT_DIR": str(self.tree.root / ".git")})

    def prepare(self) -> None:
        """Makes the work tree, unless it is there and whole. Raises GitError."""
        root = self.tree.root
        if (root / ".git").is_file() and self.tree.ask("rev-parse", "--verify", "-q", "HEAD").status == 0:
            return
        if root.exists():
            try:
                shutil.rmtree(root)
            except OSError as error:
                raise GitError("worktree", 128, f"{error.filename}: {error.strerror}") from error
        if self.checkout.ask("rev-parse", "--verify", "-q", "HEAD").status:
            raise GitError("worktree", 128, f"{self.checkout.root} has no commit yet")
        self.checkout.run("worktree", "add", "-f", "-q", "--no-checkout", "--detach", str(root), "HEAD")

    def fetch(self) -> str:
        """The commit at which the branch is at the remote now. Raises GitError if it cannot be asked."""
        refspec = f"+refs/heads/{self.branch}:{TIP}"
        # Without the refmap git would move the person's remote-tracking branch too, on which their own pushes rely.
        options = ("--refmap=", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc", "-q")
        self._remotely("fetch", *options, "--", self.remote, refspec)
        return self.tree.run("rev-parse", "--verify", f"{TIP}^{{commit}}")

    def forward(self, last: str, tip: str) -> bool:
        """Whether the branch has only grown from `last` to `tip`. A `last` that git no longer has says no."""
        return self.tree.ask("merge-base", "--is-ancestor", last, tip).status == 0

    def unsigned(self, tip: str) -> str:
        """Why git does not take the commit's signature for good, in its words; "" if it does.

        The tip's alone is asked for: its signature covers the tree and, by their ids, all commits below it.
        """
        answer = self.tree.ask("verify-commit", tip)
        if answer.status == 0:
            return ""
        lines = [line.strip() for line in answer.error.splitlines() if line.strip()]
        return lines[-1] if lines else "it is not signed"

    def about(self, revision: str) -> dict[str, str]:
        """Who made a commit, and its first line."""
        author, _, subject = self.tree.run(
            "log", "-1", "--no-show-signature", "--format=%an%x00%s", revision
        ).partition("\0")
        return {"author": scrub(author), "subject": scrub(subject)}

    def check_out(self, revision: str) -> None:
        """Makes the work tree that of a revision, and nothing else in it. Raises GitError."""
        self.tree.run("checkout", "-q", "--force", "--detach", revision)
        self.tree.run("clean", "-q", "-ffdx")

    # -- a branch of our own -----------------------------------------------------------------------------------------

    def remote_head(self, branch: str) -> str:
        """The commit at which a branch is at the remote, "" if there is none. Raises GitError."""
        told = self._remotely("ls-remote", "--", self.remote, f"refs/heads/{branch}")
        return told.partition("\t")[0]

    def commit(self, message: str) -> str:
        """Commits all that is in the work tree; the commit's id. Signed, and in whose name, as git is set up."""
        self.tree.run("add", "--all")
        env: dict[str, str] = {}
        if self.tree.ask("var", "GIT_COMMITTER_IDENT").status:  # git is not told who it works for
            for who in ("GIT_AUTHOR", "GIT_COMMITTER"):
                env |= {f"{who}_NAME": "reconciler", f"{who}_EMAIL": f"reconciler@{os.uname().nodename}"}
        self.tree.run("commit", "-q", "--cleanup=verbatim", "-m", message, env=env)
        return self.tree.run("rev-parse", "HEAD")

    def push(self, branch: str, commit: str, expected: str) -> None:
        """Sets a branch at the remote, where it is still at `expected` ("" for: it is not there); takes it away for a
        `commit` of "". Raises GitError."""
        ref = f"refs/heads/{branch}"
        self._remotely("push", "-q", f"--force-with-lease={ref}:{expected}", "--", self.remote, f"{commit}:{ref}")

    def keep(self, ref: str, commit: str) -> None:
        """Keeps a commit from being thrown away."""
        self.tree.run("update-ref", ref, commit)

    def said(self, file: str) -> str:
        """A file of the work tree as messages name it: from the top of the repository."""
        return file.removeprefix(f"{self.tree.root}/")


def _upstream(checkout: Repository, remotes: list[str], remote: str, branch: str) -> tuple[str, str]:
    head = checkout.ask("symbolic-ref", "-q", "HEAD").out.strip()
    told = checkout.run("for-each-ref", f"--format={_UPSTREAM}", "--", head) if head else ""
    followed, _, ref = told.partition("\0")
    if not branch:
        branch = ref.removeprefix("refs/heads/")
    if not remote:
        remote = followed or (remotes[0] if len(remotes) == 1 else "")
    if not branch:
        what = f"the branch {head.removeprefix('refs/heads/')} has no upstream" if head else "no branch is checked out"
        raise UsageError(f"{checkout.root}: {what}", hint="say which one to follow: --branch main")
    if not remote:
        raise UsageError(f"{checkout.root}: which remote?", hint=f"--remote {' or '.join(remotes) or 'NAME'}")
    return remote, branch
