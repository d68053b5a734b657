"""`reconciler observe`: what the homes hold, as a file for plans that may not look at them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .common import File, State


def register(app: typer.Typer) -> None:
    app.command("observe", short_help="Publish what the homes hold, for untrusted plans.")(observe)


def observe(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to write it, for `plan --untrusted --observed`.")
    ],
    file: File = None,
    state: State = None,
) -> int:
    """Publish what the homes hold, without secrets, for plans of setups from somebody else. It only reads."""
    from datetime import UTC, datetime

    from .. import observed
    from ..provenance import provenance
    from ..publish import publish
    from .common import workspace
    from .render.style import out as line
    from .render.style import safe

    space = workspace(file, state)
    published = publish(space, datetime.now(UTC), provenance(space.setup.files))
    observed.write(out, published)
    failed = 0
    for home_id, item in published.homes.items():
        failed += bool(item.failed)
        count = sum(1 for _ in item.observation.all())
        line(f"  ✗ {safe(home_id)}  {safe(item.failed)}" if item.failed else f"  {safe(home_id)}  {count} thing(s)")
    line(f"Published to {out}; plan by it with: reconciler plan --untrusted --base REF --observed {out}")
    return 4 if failed else 0
