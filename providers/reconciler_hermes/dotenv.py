"""The home's `.env`, read by Hermes's own rules: the names for the plan, the values only to hide them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler_shape import dotenv

from .models import STANDARD_KEYS

HOME_CHANNELS = {
    "bluebubbles": "BLUEBUBBLES_HOME_CHANNEL",
    "dingtalk": "DINGTALK_HOME_CHANNEL",
    "discord": "DISCORD_HOME_CHANNEL",
    "email": "EMAIL_HOME_ADDRESS",
    "feishu": "FEISHU_HOME_CHANNEL",
    "matrix": "MATRIX_HOME_ROOM",
    "mattermost": "MATTERMOST_HOME_CHANNEL",
    "qqbot": "QQBOT_HOME_CHANNEL",
    "signal": "SIGNAL_HOME_CHANNEL",
    "slack": "SLACK_HOME_CHANNEL",
    "sms": "SMS_HOME_CHANNEL",
    "telegram": "TELEGRAM_HOME_CHANNEL",
    "wecom": "WECOM_HOME_CHANNEL",
    "weixin": "WEIXIN_HOME_CHANNEL",
    "whatsapp": "WHATSAPP_HOME_CHANNEL",
    "whatsapp_cloud": "WHATSAPP_CLOUD_HOME_CHANNEL",
}
"""Platform → the variable with the chat that a bare `deliver: <platform>` goes to (Hermes `cron/scheduler.py`)."""

# Hermes splits lines that lost their line break where a name that it knows begins.
_KNOWN = frozenset(name for names in STANDARD_KEYS.values() for name in names) | frozenset(
    f"{platform.upper()}_{suffix}"
    for platform in HOME_CHANNELS
    for suffix in ("BOT_TOKEN", "APP_TOKEN", "TOKEN", "ALLOWED_USERS", "HOME_CHANNEL")
)


@dataclass(frozen=True, slots=True)
class DotEnv:
    """`names` in the file's order; `filled` are those with a value; `secrets` what must never be shown. `values` are
    for comparison only."""

    names: tuple[str, ...] = ()
    filled: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict, repr=False)


def parse(data: bytes) -> DotEnv:
    """By the rules of Hermes's `load_env`. The values go nowhere but into the caller's `Hider`."""
    values: dict[str, str] = {}
    for line in data.decode("utf-8-sig", errors="replace").splitlines():
        for part in _split(line.strip()):
            entry = dotenv.entry(part)
            if entry:
                values[entry[0]] = entry[1]
    return DotEnv(
        names=tuple(values),
        filled=frozenset(name for name, value in values.items() if value),
        secrets=tuple(value for name, value in values.items() if dotenv.is_secret(name, value)),
        values=values,
    )


def _split(line: str) -> list[str]:
    spans = [
        (m.start(), m.end()) for name in _KNOWN for m in re.finditer(re.escape(name) + "=", line) if name + "=" in line
    ]
    starts = sorted({s for s, e in spans if not any(s2 <= s and e2 >= e and (s2, e2) != (s, e) for s2, e2 in spans)})
    if len(starts) < 2 or starts[0] != 0:
        return [line]
    parts = [line[a:b] for a, b in zip(starts, [*starts[1:], len(line)], strict=True)]
    opaque = any("://" in p or "?" in p or "&" in p or any(c.isspace() for c in p) for p in parts[:-1])
    return [line] if opaque else [part.strip() for part in parts]
