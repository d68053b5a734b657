"""What of a policy steers the gate, as it is read and as a home's stands over the setup's."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from reconciler_specs.load import load_text
from reconciler_specs.policy import Policy
from reconciler_specs.window import Window

HEAD = "version: 1\nname: solo\nhomes: {main: {harness: hermes, path: /tmp/x, policy: HOME}}\npolicy: SETUP\n"
WEEK = 7 * 24 * 3600


def policy(setup: str, home: str = "{}") -> Policy:
    text = HEAD.replace("HOME", home).replace("SETUP", setup)
    return load_text(text, "setup.yaml", Path("/")).policy_of("main")


# (the setup's policy, the home's, a name of it, its value)
READ: list[tuple[str, str, str, Any]] = [
    ("{}", "{}", "on_removed", "delete"),
    ("{}", "{}", "windows", ()),
    ("{on_removed: pause}", "{}", "grace", WEEK),
    ("{on_removed: {pause: 30d}}", "{}", "grace", 30 * 24 * 3600),
    ("{on_removed: {pause: 30d}}", "{}", "on_removed", "pause"),
    ("{on_removed: {pause: 30d}}", "{on_removed: pause}", "grace", WEEK),
    ("{on_removed: pause}", "{on_removed: delete}", "on_removed", "delete"),
    ("{on_removed: pause}", "{on_drift: watch}", "grace", WEEK),
    ("{limits: {deletes: 3, minutes: 5}}", "{limits: {deletes: {jobs: 1}}}", "limits",
     {"deletes": 3, "minutes": 5, "deletes jobs": 1}),
    ("{limits: {changes: {jobs: 3, profiles: 2}}}", "{}", "limits", {"changes jobs": 3, "changes profile": 2}),
    ("{limits: {changes: {jobs: 3}}}", "{limits: {changes: {jobs: 9}}}", "limits", {"changes jobs": 9}),
    ("{unattended: [restart home, set mcp_servers, adopt homes]}", "{}", "unattended",
     ("restart home", "set mcp_servers", "adopt home")),
    ("{raise: {delete jobs: refuse}}", "{raise: {follow inference: refuse, restart home: confirm}}", "raise_",
     {"delete jobs": "refuse", "follow inference": "refuse", "restart home": "confirm"}),
    ('{windows: [{deny: {days: [sun, fri], from: "22:00", to: "06:30"}, zone: UTC, why: rest}]}', "{}", "windows",
     (Window(True, "UTC", (4, 6), 22 * 60, 6 * 60 + 30, why="rest"),)),
    ("{windows: [{allow: {dates: 2026-12-24}, zone: UTC, kinds: [jobs, homes]}]}", "{}", "windows",
     (Window(False, "UTC", first=date(2026, 12, 24), last=date(2026, 12, 24), kinds=("jobs", "home")),)),
    ("{windows: [{deny: {days: [mon]}, zone: UTC}]}", "{windows: [{deny: {days: [mon]}, zone: UTC}]}", "windows",
     (Window(True, "UTC", (0,)),)),
]  # fmt: skip


@pytest.mark.parametrize(("setup", "home", "name", "value"), READ)
def test_a_policy_as_it_is_read(setup: str, home: str, name: str, value: Any) -> None:
    assert getattr(policy(setup, home), name) == value
