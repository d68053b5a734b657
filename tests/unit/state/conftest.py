"""The first of several runners on one state branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners import Runner
from world import HEAD, home_text


@pytest.fixture
def one(tmp_path: Path) -> Runner:
    made = Runner(tmp_path, "one")
    made.home()
    made.setup(HEAD + home_text())
    return made
