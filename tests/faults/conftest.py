"""Fixtures for tests that break things."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.rig import FIRST, Rig


@pytest.fixture
def bare(tmp_path: Path) -> Rig:
    """A home that no setup has met, with a setup that adopts it."""
    rig = Rig(tmp_path)
    rig.install()
    rig.make_home()
    rig.setup(FIRST)
    return rig


@pytest.fixture
def rig(bare: Rig) -> Rig:
    """A home on which the first setup has been applied."""
    events = bare.apply()
    assert {str(e.outcome) for e in events if e.outcome} == {"applied"}, events
    return bare
