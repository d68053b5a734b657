"""Settings: values of config.yaml by their dotted path, between the file and the setup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from reconciler_specs.secrets import secret_key

from .models import INFERENCE
from .plain import is_native

Path = tuple[str, ...]

_SEGMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^."]+)')
_ADDRESSES = ("url", "endpoint", "host", "proxy")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class BadKey(ValueError):
    """Not a dotted path."""


class Missing:
    """Nothing stands at a path; None may be a value."""


MISSING = Missing()


def split(key: str) -> Path:
    """`providers."my.host".base_url` as its three segments. Raises BadKey."""
    segments: list[str] = []
    at = 0
    while match := _SEGMENT.match(key, at):
        segments.append(re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2])
        at = match.end()
        if at == len(key):
            return tuple(segments)
        if key[at] != ".":
            break
        at += 1
    raise BadKey(f"{key}: not a dotted path (a segment with a dot stands in double quotes)")


def last(key: str) -> str:
    """The key under which the value stands; all of `key` where that is no dotted path."""
    try:
        return split(key)[-1]
    except BadKey:
        return key


def join(segments: Sequence[str]) -> str:
    """The dotted path of some segments."""
    quoted = (s if s and not re.search(r'[."\\]', s) else '"' + re.sub(r'(["\\])', r"\\\1", s) + '"' for s in segments)
    return ".".join(quoted)


def look_up(raw: Mapping[str, Any], path: Sequence[str]) -> Any:
    """The value at a path, MISSING if a part of it is not there."""
    here: Any = raw
    for segment in path:
        if not isinstance(here, dict) or segment not in here:
            return MISSING
        here = here[segment]
    return here


def leaves(raw: Mapping[str, Any], above: Path = ()) -> Iterator[Path]:
    """Every path that ends in something other than a filled mapping."""
    for key, value in raw.items():
        path = (*above, key)
        if isinstance(value, dict) and value and not is_native(value):
            yield from leaves(value, path)
        else:
            yield path


OWNED: Mapping[Path, str] = {
    ("mcp_servers",): "mcp_servers",
    ("platform_toolsets",): "toolsets",
    ("toolsets",): "toolsets",
    ("skills", "disabled"): "skills",
    ("plugins", "enabled"): "plugins",
    ("plugins", "disabled"): "plugins",
    ("plugins", "entries"): "plugins",
}
"""Paths that a kind of its own stands for, by the kind's word."""


def owned(path: Sequence[str], value: Any = None) -> str:
    """Why a path (with that value, if it is a mapping) is no plain setting, "" if it is one."""
    if path[0] in INFERENCE:
        return f"{path[0]} belongs to inference: declare it there"
    inner = [(*path, *leaf) for leaf in leaves(value)] if isinstance(value, dict) else []
    for each in (tuple(path), *inner):
        for mine, word in OWNED.items():
            if each[: len(mine)] == mine:
                return f"{join(mine)} belongs to {word}: declare it there"
    if path[0] == "_config_version":
        return "_config_version is Hermes's own mark; it is set when a home is made, and by Hermes's updates"
    return ""


def chosen(
    raw: Mapping[str, Any],
    wanted: Sequence[str],
    everything: bool,
    elsewhere: Callable[[Path], bool] = lambda path: False,
) -> Iterator[tuple[str, Path, Any]]:
    """Key, path and value of the wanted settings that are there; with `everything`, of all that no other kind owns.
    `elsewhere` says of a path that another kind shows it; declared as a setting it is one all the same."""
    paths: dict[str, Path] = {}
    for key in wanted:
        try:
            paths[key] = split(key)
        except BadKey:
            continue  # `canon` refuses it, with the reason
    if everything:
        found = (path for path in leaves(raw) if not owned(path) and not elsewhere(path))
        paths |= {join(path): path for path in found if join(path) not in paths}
    for key, path in paths.items():
        value = look_up(raw, path)
        if not isinstance(value, Missing):
            yield key, path, value


def under_secret(path: Sequence[str]) -> bool:
    """Whether a value there is a credential more often than not: in `headers` and `env` of a server."""
    return any(segment in ("headers", "env") for segment in path[:-1])


def through_a_value(path: Sequence[str], raw: Mapping[str, Any]) -> str:
    """Why a path cannot be set by itself in this file, "" if it can."""
    here: Any = raw
    for at, segment in enumerate(path[:-1]):
        here = here.get(segment) if isinstance(here, dict) else None
        if here is not None and not isinstance(here, dict):
            kind = "list" if isinstance(here, list) else "single value"
            return f"{join(path[: at + 1])} is a {kind} in config.yaml: declare it as a whole"
    return ""


def is_address(key: str) -> bool:
    """Whether its value says where data goes."""
    return last(key).lower().endswith(_ADDRESSES)


def referenced(value: Any) -> tuple[Any, set[str]]:
    """A declared value as config.yaml holds it, and the secrets that it names: `{secret: NAME}` is `${NAME}` there,
    which is expanded when the file is loaded."""
    if isinstance(value, dict):
        if set(value) == {"secret"}:
            return f"${{{value['secret']}}}", {str(value["secret"])}
        pairs = {key: referenced(item) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, set().union(*(names for _, names in pairs.values()))
    if isinstance(value, list):
        items = [referenced(item) for item in value]
        return [item for item, _ in items], set().union(*(names for _, names in items))
    return value, set()


def named(value: Any, under: str) -> Any:
    """The other way: a reference under a credential's key is named as the setup language wants it."""
    if isinstance(value, dict):
        return {key: named(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item, under) for item in value]
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return {"secret": match[1]} if match and secret_key(under) else value
