"""Settings: single values of config.yaml by their dotted path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from reconciler.observe import Observed, Things, Unknown
from reconciler_specs.address import Kind
from reconciler_specs.secrets import secret_key
from reconciler_specs.shape import Json

from . import home
from .hiding import is_hidden
from .schedule import is_native
from .worker import record as records

OWNED = {
    "model": "inference",
    "fallback_providers": "inference",
    "fallback_model": "inference",
    "auxiliary": "inference",
    "provider": "inference",
    "base_url": "inference",
    "api_base": "inference",
}
"""Top-level keys that a kind of its own stands for."""

SECURITY = (
    "approvals",
    "security",
    "command_allowlist",
    "hooks",
    "hooks_auto_accept",
    "unauthorized_dm_behavior",
    "terminal",
    "plugins",
    "mcp_servers",
    "toolsets",
    "platform_toolsets",
    "quick_commands",
    "privacy",
    "secrets",
    "gateway",
    "platforms",
    "cron.provider",
    "agent.disabled_toolsets",
    "browser",
    "code_execution",
    "computer_use",
    "dashboard",
    "discord",
    "matrix",
    "mattermost",
    "mcp",
    "network",
    "slack",
    "telegram",
    "whatsapp",
    "skills.external_dirs",
)
"""What decides who may do what, or runs code. Looser cannot be told from tighter, so a change counts as looser."""

_SEGMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."]+)')


class BadKey(ValueError):
    """Not a dotted path."""


def split(key: str) -> tuple[str, ...]:
    """`providers."my.host".base_url` → its three segments. Raises BadKey."""
    segments: list[str] = []
    at = 0
    while True:
        match = _SEGMENT.match(key, at)
        if not match:
            raise BadKey(f"{key}: not a dotted path (a segment with a dot stands in double quotes)")
        quoted = match[1]
        segments.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else match[2])
        at = match.end()
        if at == len(key):
            return tuple(segments)
        if key[at] != ".":
            raise BadKey(f"{key}: not a dotted path")
        at += 1


def join(segments: Sequence[str]) -> str:
    return ".".join(s if s and not re.search(r'[."\\]', s) else _quote(s) for s in segments)


def _quote(segment: str) -> str:
    return '"' + segment.replace("\\", "\\\\").replace('"', '\\"') + '"'


class _Missing:
    pass


MISSING = _Missing()


def look_up(raw: Mapping[str, Json], path: Sequence[str]) -> Json | _Missing:
    """The value at a path, MISSING if a part of it is not there."""
    here: Json = raw
    for segment in path:
        if not isinstance(here, dict) or segment not in here:
            return MISSING
        here = here[segment]
    return here


def leaves(raw: Mapping[str, Json], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Every path that ends in something other than a filled mapping."""
    for key, value in raw.items():
        path = (*above, key)
        if isinstance(value, dict) and value and not is_native(value):
            yield from leaves(value, path)
        else:
            yield path, value


def read(profile: home.Profile, wanted: Sequence[str], everything: bool) -> Things | Unknown:
    """The wanted settings that are there; with `everything`, all that no other kind stands for."""
    if profile.config.unknown:
        return profile.config.unknown
    paths: dict[str, tuple[str, ...]] = {}
    for key in wanted:
        try:
            paths[key] = split(key)
        except BadKey:
            continue  # `canon` refuses it, with the reason
    if everything:
        for path, _ in leaves(profile.config.raw):
            if path[0] not in OWNED and path[0] != "_config_version":
                paths.setdefault(join(path), path)
    things = {}
    for key, path in paths.items():
        value = look_up(profile.config.raw, path)
        if isinstance(value, _Missing):
            continue
        things[key] = Observed(
            Kind.SETTING,
            profile.name,
            key,
            {"value": profile.hider.value(value, path[-1], forced=_under_secret(path))},
            name=key,
            fingerprint=records.digest(value, profile.hider.key),
        )
    return things


def _under_secret(path: Sequence[str]) -> bool:
    # What lies in `headers` and `env` of an MCP server is a credential more often than not.
    return any(segment in ("headers", "env") for segment in path[:-1])


def refusal(key: str, raw: Mapping[str, Json], pinned: Sequence[str]) -> str:
    """Why `key` cannot be a setting here, "" if it can."""
    try:
        path = split(key)
    except BadKey as error:
        return str(error)
    if path[0] in OWNED:
        return f"{path[0]} belongs to {OWNED[path[0]]}: declare it there"
    if path[0] == "_config_version":
        return "_config_version is Hermes's own mark; it is set when a home is made, and by Hermes's updates"
    dotted = ".".join(path)
    for pin in pinned:
        if dotted == pin or dotted.startswith(f"{pin}.") or pin.startswith(f"{dotted}."):
            return f"{pin} is pinned by this machine's administrator; Hermes ignores it in config.yaml"
    here: Json = raw
    for at, segment in enumerate(path[:-1]):
        here = here.get(segment) if isinstance(here, dict) else None
        if here is not None and not isinstance(here, dict):
            kind = "list" if isinstance(here, list) else "single value"
            return f"{join(path[: at + 1])} is a {kind} in config.yaml: declare it as a whole"
    return ""


def loosens(key: str) -> bool:
    """Whether the setting is of the security class."""
    try:
        dotted = ".".join(split(key))
    except BadKey:
        return True
    if dotted.isupper():
        return True  # Hermes's gateway takes such a key for an environment variable (`TELEGRAM_ALLOW_ALL_USERS`)
    return any(dotted == part or dotted.startswith(f"{part}.") for part in SECURITY)


def express(thing: Observed) -> Json:
    """The setting's value, None where it holds something that a setup must not, or cannot, say."""
    value = thing.get("value")
    if isinstance(value, Unknown) or is_hidden(value) or is_native(value):
        return None
    return _named(value, split(thing.id)[-1])


def canon(value: Json) -> tuple[Json, set[str]]:
    """A declared value as config.yaml holds it, and the secrets that it names: `{secret: NAME}` is `${NAME}` there,
    which Hermes expands when it loads the file."""
    if isinstance(value, dict):
        if set(value) == {"secret"}:
            return f"${{{value['secret']}}}", {str(value["secret"])}
        pairs = {key: canon(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, set().union(*(names for _, names in pairs.values()))
    if isinstance(value, list):
        items = [canon(item) for item in value]
        return [item for item, _ in items], set().union(*(names for _, names in items))
    return value, set()


def _named(value: Json, under: str) -> Json:
    """The other way: a reference under a credential's key is named as the setup language wants it."""
    if isinstance(value, dict):
        return {key: _named(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, under) for item in value]
    match = re.fullmatch(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", value) if isinstance(value, str) else None
    return {"secret": match[1]} if match and secret_key(under) else value
