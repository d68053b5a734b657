"""Settings of the security class: which they are, and whether a change of one makes it looser. Data, and pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.action import CLEAR, Clear
from reconciler.observe import ABSENT, Absent, Seen, Unknown
from reconciler_specs.shape import Json

from .dotted import BadKey, leaves, look_up, split

CLASS = (
    "approvals", "security", "command_allowlist", "hooks", "hooks_auto_accept", "unauthorized_dm_behavior", "terminal",
    "plugins", "mcp_servers", "toolsets", "platform_toolsets", "quick_commands", "privacy", "secrets", "gateway",
    "platforms", "cron.provider", "agent.disabled_toolsets", "browser", "code_execution", "computer_use", "dashboard",
    "discord", "matrix", "mattermost", "mcp", "network", "slack", "telegram", "whatsapp", "skills.external_dirs",
)  # fmt: skip
"""What decides who may do what, or runs code. Where looser cannot be told from tighter, a change counts as looser."""

LADDERS: Mapping[str, tuple[Json, ...]] = {
    "approvals.mode": ("manual", "smart", "off"),
    "approvals.cron_mode": ("deny", "approve"),
    "approvals.mcp_reload_confirm": (True, False),
    "approvals.destructive_slash_confirm": (True, False),
    "hooks_auto_accept": (False, True),
    "security.allow_private_urls": (False, True),
    "security.redact_secrets": (True, False),
    "security.tirith_enabled": (True, False),
    "security.tirith_fail_open": (False, True),
    "security.allow_lazy_installs": (False, True),
    "security.website_blocklist.enabled": (True, False),
    "worker.permission.default": ("deny", "allow"),
    "worker.permission.unattended": ("deny", "approve"),
}
"""Values from the strictest to the loosest."""

USUAL: Mapping[str, Json] = {
    "approvals.cron_mode": "deny",
    "hooks_auto_accept": False,
    "worker.permission.default": "deny",
    "worker.permission.unattended": "deny",
}
"""What holds where a setting says nothing, if that is the same in every version."""

ALLOWING = frozenset({"command_allowlist"})
"""Lists whose every member allows something: one more is looser."""

FORBIDDING = frozenset({"approvals.deny", "agent.disabled_toolsets", "security.website_blocklist.domains"})
"""Lists whose every member forbids something: one less is looser."""


def is_security(key: str, more: Sequence[str] = ()) -> bool:
    """Whether a setting is of the security class; `more` are the provider's own ones."""
    try:
        dotted = ".".join(split(key))
    except BadKey:
        return True  # it is refused anyway
    if dotted.isupper():
        return True  # the gateway takes such a key for an environment variable (`TELEGRAM_ALLOW_ALL_USERS`)
    return any(_within(dotted, part) for part in (*CLASS, *more))


def _within(dotted: str, part: str) -> bool:
    return dotted == part or dotted.startswith(f"{part}.")


def loosens(key: str, old: Seen, new: Json | Clear | Absent, more: Sequence[str] = ()) -> bool:
    """Whether a setting that goes from `old` to `new` (CLEAR or ABSENT: the harness's default) may let somebody do more
    than before. False for what is not of the security class."""
    if not is_security(key, more):
        return False
    try:
        path = split(key)
    except BadKey:
        return True
    after = ABSENT if new is CLEAR else new
    if not (isinstance(old, dict) or isinstance(after, dict)):
        return _looser(".".join(path), old, after)
    # A mapping is as loose as its parts: those that differ.
    before_map = old if isinstance(old, dict) else {}
    after_map = after if isinstance(after, dict) else {}
    if any(side not in (ABSENT, None) and not isinstance(side, dict) for side in (old, after)):
        return True
    inner = set(leaves(before_map)) | set(leaves(after_map))
    return any(
        _looser(".".join((*path, *leaf)), _at(before_map, leaf), _at(after_map, leaf))
        for leaf in inner
        if _at(before_map, leaf) != _at(after_map, leaf)
    )


def _at(value: Mapping[str, Json], path: Sequence[str]) -> Seen:
    found = look_up(value, path)
    return found if isinstance(found, str | int | float | list | dict | bool) or found is None else ABSENT


def _looser(name: str, old: Seen, new: Seen) -> bool:
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return True
    if name in ALLOWING or name in FORBIDDING:
        before, after = _members(old), _members(new)
        if before is None or after is None:
            return True
        return bool(after - before) if name in ALLOWING else bool(before - after)
    ladder = LADDERS.get(name)
    if ladder is None:
        return True
    was, will = _rung(name, ladder, old), _rung(name, ladder, new)
    if was is not None and will is not None:
        return will > was
    # Nothing is looser than the loosest, and nothing is made looser by the strictest.
    return not (will == 0 or was == len(ladder) - 1)


def _rung(name: str, ladder: tuple[Json, ...], value: Seen) -> int | None:
    if value is ABSENT or value is None:
        value = USUAL.get(name)
    if value is False and "off" in ladder:
        value = "off"  # as YAML reads a bare `off`, and as the harness takes it
    return next((at for at, rung in enumerate(ladder) if rung == value and type(rung) is type(value)), None)


def _members(value: Seen) -> set[str] | None:
    if value is ABSENT or value is None:
        return set()
    return set(map(str, value)) if isinstance(value, list) else None
