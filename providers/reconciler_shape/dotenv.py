"""Lines of a profile's `.env`: what one says, and whether its value is a secret."""

from __future__ import annotations

import re

from reconciler_specs.secrets import looks_secret, secret_key

_OPEN = (
    "_ADDRESS", "_CHANNEL", "_CWD", "_DIR", "_ENV", "_HOST", "_MODE", "_MODEL", "_NAME", "_PATH", "_PORT", "_PROVIDER",
    "_ROOM", "_THREAD_ID", "_TIMEOUT", "_TIMEZONE", "_USERS",
)  # fmt: skip
_PLAIN = re.compile(r"[-+\d.,:\s]*|/[\w./-]*|[a-z]+(?:[-_ ][a-z]+)*|https?://[\w.:/-]*", re.IGNORECASE)


def entry(line: str) -> tuple[str, str] | None:
    """Name and value of a line, quotes round the value stripped; None for a comment and what is no entry."""
    text = line.lstrip("\ufeff").strip()
    if text.startswith("#") or "=" not in text:
        return None
    name, _, value = text.removeprefix("export ").partition("=")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return name.strip(), value


def is_secret(name: str, value: str) -> bool:
    """Whether a value must never be seen. A chat id or a path stays readable where a job or a setting names it too."""
    if secret_key(name) or looks_secret(value):
        return True
    return not name.endswith(_OPEN) and not _PLAIN.fullmatch(value)
