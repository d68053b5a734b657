"""A fresh home of the orchestrator for each test, at a path that is short enough for its socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import lab


@pytest.fixture
def root() -> Iterator[Path]:
    """The folder around the home; the home is `root / "home"`."""
    with lab.short() as found:
        lab.make(found / "home")
        yield found
