"""The store that a setup's `state:` block names."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler_specs.setup import Setup
from reconciler_specs.state import StatePlace
from reconciler_state.local import LocalStore

if TYPE_CHECKING:
    from reconciler_state.shared import SharedStore


def store_of(setup: Setup, root: Path) -> LocalStore:
    """`root` is the state folder of this machine, whichever it is. Nothing is read or made yet."""
    return LocalStore(root) if setup.state.backend == "local" else shared_store(setup, root)


def shared_store(setup: Setup, root: Path) -> SharedStore:
    """The store on the branch that the setup names."""
    from reconciler_state.branch import Branch
    from reconciler_state.shared import SharedStore

    said, here = setup.state, setup.stands
    folder = root / "branches" / _key(said, here)
    branch = Branch(folder / "objects.git", said.remote, said.branch, here, said.path)

    verb = next((word for word in sys.argv[1:2] if re.fullmatch(r"[a-z]+", word)), "apply")
    return SharedStore(root, branch, folder, verb=verb, texts=said.texts)


def _key(said: StatePlace, here: Path) -> str:
    """A folder's name: something for the eye, and a digest that tells branches apart. A remote's name, or a relative
    path, means another thing for another setup folder."""
    at = "" if re.match(r"[\w+.-]+:|/", said.remote) else str(here)
    digest = hashlib.sha256("\0".join((at, said.remote, said.branch, said.path)).encode("utf-8", "surrogatepass"))
    return f"{re.sub(r'[^a-z0-9]+', '-', said.branch.lower()).strip('-')[:24]}-{digest.hexdigest()[:16]}"
