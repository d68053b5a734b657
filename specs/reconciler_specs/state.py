"""The `state:` block: where the record of what was applied is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator

from .document import Node
from .reading import TEXT, Field, Fields, Reasons, check_keys, is_map, read
from .values import Refusal, described, filled, word

BACKENDS = ("local", "git")
FIELDS: Fields = {
    "backend": Field("A folder of this machine, or a git branch.", {"enum": list(BACKENDS), "default": "local"}),
    "branch": Field("The branch, made when it is first needed.", {**TEXT, "default": "reconciler-state"}),
    "remote": Field("Where it is: a remote's name, a URL or a path.", {**TEXT, "default": "origin"}),
    "path": Field("The folder in the branch (default: its root).", TEXT),
    "texts": Field(
        "Whether long texts are kept there in full or as digests.", {"enum": ["full", "digests"], "default": "full"}
    ),
}
# Of git's rules for a branch's name, the part that a person would want.
_BRANCH = re.compile(r"(?!.*(\.\.|//|\.lock(/|$)|/\.|@\{))[A-Za-z0-9_][A-Za-z0-9._/@+-]*(?<![./])\Z")


@dataclass(frozen=True, slots=True)
class StatePlace:
    """Where state is kept. `remote` is a remote's name, a URL or a path, `path` a folder in the branch ("" for its
    root); `texts` says whether long texts are kept there in full."""

    backend: str = "local"
    branch: str = "reconciler-state"
    remote: str = "origin"
    path: str = ""
    texts: bool = True


def _branch(value: Any) -> str:
    name = filled(value)
    if not _BRANCH.match(name):
        raise Refusal(f"{described(value)} is no name of a branch", "write branch: reconciler-state")
    return name


def _remote(value: Any) -> str:
    remote = filled(value)
    if remote.startswith("-") or any(not c.isprintable() for c in remote):
        raise Refusal(f"{described(value)} is no remote", "a remote's name, a URL or a path")
    if re.match(r"[A-Za-z0-9]+::", remote):
        raise Refusal("a transport that starts a program is not used", "a URL (https, ssh) or a path")
    # Over http a user alone is a token, and so may be what is asked for; ssh has its user there.
    if re.search(r"://[^/@]*:[^/@]*@", remote) or re.match(r"(?i)https?://([^/]*@|[^?#]*[?#])", remote):
        raise Refusal("a credential stands in it", "git keeps credentials itself: git help credentials")
    return remote


def _path(value: Any) -> str:
    path = filled(value).strip("/")
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") or part.lower() == ".git" for part in parts) or not path.isprintable():
        raise Refusal(f"{described(value)} is no folder in the branch", "write path: agents")
    return path


class StateModel(BaseModel):
    """The block as written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    backend: Annotated[str, PlainValidator(word(*BACKENDS))] = "local"
    branch: Annotated[str, PlainValidator(_branch)] = "reconciler-state"
    remote: Annotated[str, PlainValidator(_remote)] = "origin"
    path: Annotated[str, PlainValidator(_path)] = ""
    texts: Annotated[str, PlainValidator(word("full", "digests"))] = "full"


def read_state(node: Node | None, reasons: Reasons) -> StatePlace:
    """The `state:` block; the local folder if there is none or it is wrong."""
    if node is None or not is_map(node, "state", reasons):
        return StatePlace()
    check_keys(node, FIELDS, "state", reasons)
    said = read(StateModel, node, "state", node.where, reasons)
    if said is None:
        return StatePlace()
    for key in sorted(said.model_fields_set - {"backend"}):
        if said.backend != "git":
            reasons.add(node.where_key(key), f"state: {key} is for a branch", "write backend: git, or take it away")
    return StatePlace(said.backend, said.branch, said.remote, said.path, said.texts == "full")
