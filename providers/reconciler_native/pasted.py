"""Secrets that somebody pasted into a file of the home: moved into `.env`, a reference left in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from reconciler_specs.secrets import looks_secret, secret_key

from .dotenv import EnvFile
from .mapfile import MapFile
from .yamltext import YamlFile

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_WORD = re.compile(r"[^A-Za-z0-9]+")
_OPEN = frozenset({"placeholder_key", "record_key"})


def is_pasted(key: str, value: Any) -> bool:
    """Whether a value is a credential in the clear: a text under a credential's key, or one that looks like a token."""
    # What has a blank in it is a sentence, or more than a file of lines can keep; a path leads to a key and is none.
    if not isinstance(value, str) or not value.strip() or _REFERENCE.search(value) or len(value.split()) != 1:
        return False
    if secret_key(key):
        return key.lower() not in _OPEN and not value.startswith(("/", "~/"))
    return looks_secret(value)


def move(config: YamlFile, webhooks: MapFile, env: EnvFile) -> list[str]:
    """Moves what is pasted; the places that it found, never the values. `.env` has to be written first."""
    moved = []
    for path, value in list(_texts(config.raw, ())):
        if is_pasted(path[-1], value):
            config.set(path, f"${{{_keep(env, path, value)}}}")
            moved.append(f"{config.path} [{'.'.join(path)}]")
    for name, entry in webhooks.items():
        secret = entry.get("secret") if isinstance(entry, dict) else None
        if isinstance(secret, str) and is_pasted("secret", secret):
            variable = _keep(env, ("webhook", name, "secret"), secret)
            webhooks.put(name, {**entry, "secret": f"${{{variable}}}"})
            moved.append(f"{webhooks.path} [{name}.secret]")
    return moved


def _texts(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, str) and path:
        yield path, value


def _keep(env: EnvFile, path: tuple[str, ...], value: str) -> str:
    """The name in `.env` that has this value; a new one is made from where it stood."""
    known = env.values()
    base = _WORD.sub("_", "_".join(part for part in path if part not in ("platforms", "extra"))).strip("_").upper()
    base = base if base[:1].isalpha() else f"SECRET_{base}"
    name, count = base, 2
    while known.get(name) not in (None, "", value):
        name, count = f"{base}_{count}", count + 1
    env.set(name, value)
    return name
