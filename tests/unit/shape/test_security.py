"""Which way a change of a security-class setting goes (S0-43)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.action import CLEAR
from reconciler.observe import ABSENT
from reconciler_shape import security

LOOSER = [
    ("approvals.mode", "manual", "smart"),
    ("approvals.mode", "manual", False),  # YAML's bare `off`
    ("approvals.mode", ABSENT, "smart"),  # the default differs by version
    ("approvals.mode", "manual", CLEAR),
    ("approvals.mode", "manual", "weird"),
    ("approvals.cron_mode", ABSENT, "approve"),
    ("approvals.timeout", 60, 30),  # the direction cannot be told
    ("approvals.deny", ["rm *", "curl *"], ["rm *"]),
    ("approvals.deny", ["rm *"], CLEAR),
    ("approvals", {"mode": "manual"}, {"mode": "off"}),
    ("approvals", {"mode": "manual", "timeout": 3}, {"mode": "manual", "timeout": 4}),
    ("hooks_auto_accept", False, True),
    ("hooks_auto_accept", ABSENT, True),
    ("command_allowlist", ["ls"], ["ls", "rm"]),
    ("command_allowlist", ABSENT, ["ls"]),
    ("command_allowlist", ["ls"], "rm"),
    ("security.redact_secrets", True, False),
    ("security.redact_secrets", True, CLEAR),
    ("security.unheard_of", 1, 2),
    ("worker.permission.default", ABSENT, "allow"),
    ("worker.permission.unattended", "deny", "approve"),
    ("TELEGRAM_ALLOW_ALL_USERS", ABSENT, True),
    ("terminal.backend", "docker", "local"),
    ("a..b", 1, 2),
]
TIGHTER = [
    ("approvals.mode", "off", "manual"),
    ("approvals.mode", False, "smart"),
    ("approvals.mode", ABSENT, "manual"),
    ("approvals.mode", "off", CLEAR),
    ("approvals.cron_mode", "approve", CLEAR),
    ("approvals.deny", ABSENT, ["rm *"]),
    ("approvals", {"mode": "off", "timeout": 3}, {"mode": "manual", "timeout": 3}),
    ("hooks_auto_accept", True, False),
    ("hooks_auto_accept", True, CLEAR),
    ("command_allowlist", ["ls", "rm"], ["ls"]),
    ("security.redact_secrets", ABSENT, True),
    ("worker.permission.default", "allow", "deny"),
    ("worker.permission.default", "allow", CLEAR),
    ("agent.max_turns", 1, 900),  # not of the class
    ("timezone", ABSENT, "Europe/Vienna"),
]


@pytest.mark.parametrize(("key", "old", "new"), LOOSER)
def test_looser(key: str, old: Any, new: Any) -> None:
    assert security.loosens(key, old, new, ("worker",))


@pytest.mark.parametrize(("key", "old", "new"), TIGHTER)
def test_not_looser(key: str, old: Any, new: Any) -> None:
    assert not security.loosens(key, old, new, ("worker",))


def test_every_ladder_is_of_the_class() -> None:
    for key in (*security.LADDERS, *security.ALLOWING, *security.FORBIDDING):
        assert security.is_security(key, ("worker",)), key
