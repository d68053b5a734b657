"""A loop to follow a branch with."""

from __future__ import annotations

from pathlib import Path

import pytest

from following import Following


@pytest.fixture
def following(tmp_path: Path) -> Following:
    return Following(tmp_path.resolve())
