"""Rows that no door could carry out as they stand, whatever the harness: they are held or blocked by the plan."""

from __future__ import annotations

import pytest

from reconciler.action import Action, Row
from reconciler.observe import Observation, Observed, Unknown
from reconciler.provider import Provider
from reconciler_hermes import steps
from reconciler_hermes.provider import HermesProvider
from reconciler_native.provider import NativeProvider
from reconciler_specs.address import Address, Kind

PROVIDERS = (HermesProvider(), NativeProvider())
JOB = Address("main", "default", Kind.JOB, "brief")


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda p: p.harness)
@pytest.mark.parametrize("path", ["SOUL.md", "AGENTS.md", "memories/a.md", "scripts/x.sh"])
def test_the_deletion_of_an_edited_file_is_held(provider: Provider, path: str) -> None:
    address = Address("main", "default", Kind.FILE, path)
    plain = Action(Row.DELETE, address, path, reason="left the setup", origin="created", fingerprint="f")
    edited = Action(Row.DELETE, address, path, reason="left the setup", notes=("changed in the home: text",))
    [one, two] = provider.review([plain, edited], Observation(), {})
    assert one == plain and one.writes
    assert two.hold is not None and two.hold.command == f"reconciler release {address}" and not two.writes
    assert "edited since we wrote it" in two.hold.why


def test_hermes_deletes_the_whole_file_that_is_ours() -> None:
    action = Action(Row.DELETE, Address("main", "default", Kind.FILE, "SOUL.md"), "SOUL.md", fingerprint="f")
    assert steps._file(action, None)["what"] == "whole"  # type: ignore[arg-type]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda p: p.harness)
@pytest.mark.parametrize("row", [Row.REPLACED, Row.UPDATE, Row.DELETE, Row.FORGET, Row.UNOWNED])
def test_a_job_of_which_nothing_can_be_told_is_blocked_in_any_row(provider: Provider, row: Row) -> None:
    reason = Unknown("jobs.json: two jobs have the id j1")
    thing = Observed(Kind.JOB, "default", "j1", {"prompt": reason, "schedule": reason}, "brief")
    seen = Observation(version="0.19.0", things={("default", Kind.JOB): {"j1": thing}})
    [blocked] = provider.review([Action(row, JOB, "j1")], seen, {})
    assert blocked.row is Row.BLOCKED and blocked.hold is not None and blocked.hold.why == reason.reason
