"""Capture: what must not, or cannot, stand in a setup is refused, wherever in a value it is (L5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.capture import capture
from reconciler.errors import UsageError
from world import HEAD, World, home_text

HIDDEN = {"$hidden": "0" * 32}


@pytest.mark.parametrize("value", [HIDDEN, {"a": HIDDEN}, [1, {"b": [HIDDEN]}], {"$native": "x"}], ids=str)
def test_what_cannot_stand_in_a_setup_is_refused(value: Any, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.home()
    world.setup(HEAD + home_text("        settings: {a.b: 1}\n"))
    (tmp_path / "setup.yaml").write_text(world.text)
    world.apply()
    world.edit([{"set": "default/settings/a.b", "value": value}])
    before = (tmp_path / "setup.yaml").read_bytes()
    with pytest.raises(UsageError, match="cannot stand in a setup"):
        capture(world.space(), ["main/default/settings/a.b"], world.space)
    assert (tmp_path / "setup.yaml").read_bytes() == before
