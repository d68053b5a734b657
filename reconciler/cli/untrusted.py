"""What `plan --untrusted` plans from: the setup under review, the target branch's, and published homes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..workspace import Workspace


def under_review(file: Path | None, base: str, observed: Path | None, out: Path | None) -> Workspace:
    """The workspace of `plan --untrusted`. Raises UsageError for words that do not go together, and all that a setup or
    an observation is refused for."""
    from reconciler_specs.load import load

    from ..errors import UsageError
    from ..observed import read
    from ..untrusted import Untrusted, target_setup
    from .common import Installed, setup_path

    if not base or observed is None:
        raise UsageError(
            "--untrusted needs --base and --observed",
            hint="reconciler plan --untrusted --base origin/main --observed homes.json",
        )
    if out is not None:
        raise UsageError(
            "--untrusted makes no plan file: nobody may apply by it", hint="plan --out on a trusted runner"
        )
    path = setup_path(file)
    published = read(observed)
    with target_setup(path, base) as target:
        return Untrusted(load(path), target, published, Installed())
