"""How long a plan takes where OpenClaw takes so many writes a minute."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.action import Action, Row
from reconciler_specs.address import Address
from unit.openclaw.conftest import NEW, OLD


@pytest.mark.parametrize(
    ("version", "count", "said"),
    [
        (NEW, 30, ""),
        (NEW, 31, "31 creates take about 1 min"),
        (NEW, 100, "100 creates take about 3 min"),
        (OLD, 100, ""),
    ],
)
def test_more_writes_than_a_minute_takes_are_said(site: Any, version: str, count: int, said: str) -> None:
    site.config()
    site.install(version)
    site.jobs(ran=version)
    rows = [Action(Row.CREATE, Address.parse(f"main/default/jobs/j{n}")) for n in range(count)]
    notes = [note for row in site.provider.review(rows, site.observe(), {}) for note in row.notes]
    assert [note.endswith(said) for note in notes] == ([True] if said else [])
