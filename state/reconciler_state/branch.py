"""A branch of a git repository as a place for files: read and added to by plumbing, in a bare repository of our own.

No work tree, index, HEAD or branch of anybody's is touched. A commit is only ever added, by a plain push.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from .errors import StateError
from .files import Files
from .repository import Repository, gist, words

FALLBACK: Final = ("reconciler", "reconciler@localhost")
"""Who a commit is from where git knows nobody."""
# Of the configuration of the setup's own repository: how to get through to the remote, and who signs.
_TAKEN: Final = re.compile(
    r"(credential|http|url|user|author|committer|gpg)\..*|core\.(sshcommand|askpass)|commit\.gpgsign", re.DOTALL
)
# What the configuration of a repository on this machine could have the other end run, or check out.
_NEVER: Final = " ".join(
    f"-c {setting}"
    for setting in (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.alternateRefsCommand=true",
        "receive.denyCurrentBranch=refuse",
        "receive.autogc=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "protocol.ext.allow=never",
    )
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file on the branch: git's mode and kind of it, its object id and its size in bytes (-1 where it has none)."""

    mode: str
    kind: str
    oid: str
    size: int


class Branch:
    """The branch `name` of `remote` (a remote's name, a URL or a path), as seen from the setup's folder `here`.

    `cache` is the bare repository for the objects; it may be removed at any time. `path` is the folder in the branch.
    Every failure is a StateError.
    """

    def __init__(self, cache: Path, remote: str, name: str, here: Path, path: str = "") -> None:
        self.cache = cache
        self.remote = remote
        self.name = name
        self.path = tuple(part for part in path.split("/") if part)
        self._here = Repository(here)

    @property
    def words(self) -> str:
        return f"branch {self.name} of {self.remote}"

    # -- where ---------------------------------------------------------------------------------------------------

    @cached_property
    def urls(self) -> tuple[str, str]:
        """Where to fetch from and where to push to."""
        if re.search(r"[:/]", self.remote) or self.remote in (".", ".."):
            fetched = pushed = self.remote
        else:
            found = [self._here.ask("remote", "get-url", *push, "--", self.remote) for push in ((), ("--push",))]
            if any(answer.status for answer in found):
                raise StateError(
                    f"{self.words}: {self._here.root} is in no git repository with a remote {self.remote}",
                    hint="say where it is in the setup: state: {backend: git, remote: URL}",
                )
            fetched, pushed = (answer.out.strip() for answer in found)
        return self._absolute(fetched), self._absolute(pushed)

    def _absolute(self, url: str) -> str:
        path = (self._here.root / Path(url).expanduser()) if not re.match(r"[\w+.-]*:", url) else None
        return os.path.normpath(path) if path is not None else url

    @staticmethod
    def _is_local(url: str) -> bool:
        return url.startswith(("/", "file://"))

    @cached_property
    def _config(self) -> Mapping[str, str]:
        """What of the setup's own repository's configuration counts here too, as environment (some of it is secret)."""
        answer = self._here.ask("config", "--local", "--includes", "--list", "-z")
        pairs = [entry.partition("\n")[::2] for entry in words(answer.out)] if answer.status == 0 else []
        taken = [(key, value) for key, value in pairs if _TAKEN.fullmatch(key)]
        env = {"GIT_CONFIG_COUNT": str(len(taken))}
        for number, (key, value) in enumerate(taken):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return env

    @cached_property
    def _ours(self) -> Repository:
        """The bare repository, made when it is first needed."""
        repository = Repository(self.cache)
        if not (self.cache / "HEAD").exists() or not (self.cache / "objects").is_dir():
            Files().mkdir(self.cache)
            repository.run("init", "-q", "--bare", "--template=", ".")
        return repository

    @property
    def _env(self) -> Mapping[str, str]:
        return {**self._config, "GIT_DIR": str(self.cache)}

    # -- reading -------------------------------------------------------------------------------------------------

    def tip(self) -> str:
        """The branch's last commit at the remote, "" if there is no such branch."""
        ref = f"refs/heads/{self.name}"
        url = self.urls[0]
        answer = self._here.ask("ls-remote", *self._far("upload-pack", url), "--", url, ref)
        if answer.status:
            raise StateError(
                f"the {self.words} cannot be read: {gist(answer.error) or 'git says nothing'}",
                hint=f"git ls-remote {self.remote} {ref}",
            )
        lines = (line.split("\t") for line in answer.out.splitlines())
        return next((line[0] for line in lines if line[1:] == [ref]), "")

    def has(self, commit: str) -> bool:
        """Whether the commit's objects are here."""
        return (
            self.cache.exists() and self._ours.ask("cat-file", "-e", f"{commit}^{{commit}}", env=self._env).status == 0
        )

    def fetch(self, commit: str, known: str) -> None:
        """Gets `commit`, which is on the branch now; `known` is one that is here already, "" for none."""
        if self.has(commit):
            return
        url = self.urls[0]
        tips = [f"--negotiation-tip={known}"] if known and self.has(known) else []
        quiet = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-recurse-submodules")
        ref = f"refs/heads/{self.name}"
        self._ours.run("fetch", *quiet, *tips, *self._far("upload-pack", url), "--", url, ref, env=self._env)
        if not self.has(commit):
            raise StateError(f"the {self.words} was rewritten just now: {commit[:12]} is no longer in it")

    def continues(self, old: str, new: str) -> bool:
        """Whether `new` has all of `old` in its history."""
        return self.has(old) and self._ours.ask("merge-base", "--is-ancestor", old, new, env=self._env).status == 0

    def files(self, commit: str, folders: Sequence[str]) -> dict[str, Entry]:
        """What lies in these folders of the branch's folder, by its name from there; anything that git can hold."""
        if not commit:
            return {}
        prefix = "".join(f"{part}/" for part in self.path)
        listed = self._ours.content(
            "ls-tree", "-r", "-l", "-z", "--full-tree", commit, "--", *(prefix + f for f in folders), env=self._env
        )
        return {name.removeprefix(prefix): entry for name, entry in _entries(listed).items()}

    def read(self, entry: Entry) -> bytes:
        return self._ours.content("cat-file", "blob", entry.oid, env=self._env)

    def last(self, commit: str, *names: str) -> str:
        """The last commit that changed one of these files, in words: its subject, who and when; "" if none did."""
        prefix = "".join(f"{part}/" for part in self.path)
        paths = [f":(literal){prefix}{name}" for name in names]
        form = "--format=%h “%s”, %an, %cI"
        answer = self._ours.ask(
            "log", "-1", "--abbrev=12", "--no-show-signature", form, commit, "--", *paths, env=self._env
        )
        return answer.out.strip() if answer.status == 0 else ""

    # -- writing -------------------------------------------------------------------------------------------------

    def commit(self, parent: str, files: Mapping[str, bytes], message: str) -> str:
        """A commit on `parent` ("" for the first one) with these files as they now are; all others stay."""
        blobs = {}
        for name, data in files.items():
            oid = self._ours.run("hash-object", "-w", "--stdin", "--no-filters", given=data, env=self._env)
            blobs[(*self.path, *name.split("/"))] = Entry("100644", "blob", oid, len(data))
        tree = self._tree(f"{parent}^{{tree}}" if parent else "", blobs)
        parents = ["-p", parent] if parent else []
        sign = ["-S"] if self._signs else []
        env = {**self._env, **self._who}
        return self._ours.run("commit-tree", tree, *parents, *sign, "-F", "-", given=message.encode(), env=env)

    def _tree(self, tree: str, files: Mapping[tuple[str, ...], Entry]) -> str:
        there = _entries(self._ours.content("ls-tree", "-z", tree, env=self._env)) if tree else {}
        below: dict[str, dict[tuple[str, ...], Entry]] = {}
        for (first, *rest), entry in files.items():
            if rest:
                below.setdefault(first, {})[tuple(rest)] = entry
            else:
                there[first] = entry
        for name, inner in below.items():
            old = there.get(name)
            oid = self._tree(old.oid if old is not None and old.kind == "tree" else "", inner)
            there[name] = Entry("040000", "tree", oid, -1)
        lines = "".join(f"{e.mode} {e.kind} {e.oid}\t{name}\0" for name, e in there.items())
        return self._ours.run("mktree", "-z", given=lines.encode("utf-8", "surrogateescape"), env=self._env)

    def push(self, commit: str, parent: str) -> bool:
        """Makes `commit` the branch's last one if `parent` ("" for no branch) is it; False iff another one is now."""
        url = self.urls[1]
        plain = ("--quiet", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", "--no-signed")
        ref = f"refs/heads/{self.name}"
        answer = self._ours.ask(
            "push", *plain, *self._far("receive-pack", url), "--", url, f"{commit}:{ref}", env=self._env
        )
        if answer.status == 0:
            return True
        # Why is in prose only: what came of it is looked at. An answer that was lost is found here too.
        now = self.tip()
        if now in (commit, parent):
            if now == commit:
                return True
            raise StateError(
                f"the {self.words} cannot be written: {gist(answer.error) or 'git says nothing'}",
                hint=f"may you push there? git push --dry-run {self.remote} HEAD:{ref}",
            )
        return False

    def _far(self, program: str, url: str) -> Sequence[str]:
        """How the other end is started. On this machine it is ours to start, and no hook of that repository runs here;
        on another one its hooks are its owner's affair."""
        return [f"--{program}=git {_NEVER} {program}"] if self._is_local(url) else []

    @cached_property
    def _signs(self) -> bool:
        """Whether git is set up to sign commits: then ours are signed like any other."""
        return self._ours.ask("config", "--type=bool", "--get", "commit.gpgsign", env=self._env).out.strip() == "true"

    @cached_property
    def _who(self) -> Mapping[str, str]:
        """An identity for git where it has none; it is asked the way it will ask itself."""
        env = dict(self._env)
        count = int(env.get("GIT_CONFIG_COUNT", "0"))
        env |= {f"GIT_CONFIG_KEY_{count}": "user.useConfigOnly", f"GIT_CONFIG_VALUE_{count}": "true"}
        env["GIT_CONFIG_COUNT"] = str(count + 1)
        known = {
            kind: self._ours.ask("var", f"GIT_{kind}_IDENT", env=env).status == 0 for kind in ("AUTHOR", "COMMITTER")
        }
        return {
            f"GIT_{kind}_{part}": value
            for kind, is_known in known.items()
            if not is_known
            for part, value in zip(("NAME", "EMAIL"), FALLBACK, strict=True)
        }


def _entries(listed: bytes) -> dict[str, Entry]:
    """The output of `ls-tree -z`, with `-l` or without; a name that is no text comes through as it is."""
    found = {}
    for line in words(listed.decode("utf-8", "surrogateescape")):
        head, _, name = line.partition("\t")
        mode, kind, oid, *size = head.split()
        found[name] = Entry(mode, kind, oid, int(size[0]) if size and size[0].isdigit() else -1)
    return found
