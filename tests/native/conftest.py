"""A fresh native home for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler_native.home import init


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    assert init(root)
    return root
