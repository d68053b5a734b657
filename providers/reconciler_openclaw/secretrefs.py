"""References to secrets between openclaw.json (`${NAME}`, a SecretRef) and the setup's `{secret: NAME}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler_shape.hiding import Hider
from reconciler_specs.secrets import secret_key
from reconciler_specs.shape import Json

_VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")
_NAMED = ("env", "store")  # sources whose id is a name; a file's or a command's is a place
_OPAQUE = ("env", "headers")
_REF = frozenset({"source", "provider", "id"})


def is_ref(value: Any) -> bool:
    """Whether a value of openclaw.json is a SecretRef: `{source, provider?, id}`."""
    return isinstance(value, Mapping) and {"source", "id"} <= value.keys() <= _REF


def named(value: Any, under: str = "") -> Json:
    """A value with every reference in it as the setup names it; `under` is the key that it stands under.

    `${NAME}` is a reference under a credential's key only, elsewhere a text that OpenClaw fills in.
    """
    if is_ref(value):
        return {"secret": str(value["id"])} if value["source"] in _NAMED else {"$native": dict(value)}
    if isinstance(value, Mapping):
        return {str(key): named(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item, under) for item in value]
    match = _VARIABLE.fullmatch(value) if isinstance(value, str) and secret_key(under) else None
    return {"secret": match[1]} if match else value


def name_of(value: Any) -> str:
    """The name that a value as a whole refers to, wherever it stands; "" if it refers to none."""
    if is_ref(value):
        return str(value["id"]) if value["source"] in _NAMED else ""
    match = _VARIABLE.fullmatch(value) if isinstance(value, str) else None
    return match[1] if match else ""


def variable(name: str) -> str:
    """A secret where OpenClaw takes none but from its environment."""
    return f"${{{name}}}"


def is_credential(key: str, value: Any) -> bool:
    """Whether a value of the config is a credential, by its key or as a reference to one."""
    if is_ref(value) or name_of(value):
        return True
    return isinstance(value, str) and value != "" and secret_key(key)


def hidden(value: Any, hider: Hider, under: str = "", inside: bool = False) -> Json:
    """A value of the config with its secrets hidden: by key, by look, and whatever stands in an `env` or in `headers`,
    whose keys say nothing (L5)."""
    inside = inside or under in _OPAQUE
    if isinstance(value, Mapping) and set(value) == {"secret"}:
        return hider.value(value, "secret")  # a name stays, and what is none does not
    if isinstance(value, Mapping) and not inside:
        return {str(key): hidden(item, hider, str(key)) for key, item in value.items()}
    if isinstance(value, list) and not inside:
        return [hidden(item, hider, under) for item in value]
    return hider.value(value, under, forced=inside)


def wanted(value: Any) -> set[str]:
    """The names of the secrets in a declared value."""
    if isinstance(value, Mapping):
        if set(value) == {"secret"}:
            return {str(value["secret"])}
        return set().union(*(wanted(item) for item in value.values()))
    return set().union(*map(wanted, value)) if isinstance(value, list) else set()


def native(value: Any, store: frozenset[str], old: Any = None) -> Any:
    """A declared value as openclaw.json holds it. A reference that stands there already stays in its own form; a
    secret of OpenClaw's store is named as one, any other as `${NAME}` of its environment."""
    if isinstance(value, Mapping):
        if set(value) == {"secret"}:
            name = str(value["secret"])
            if is_ref(old) and named(old) == {"secret": name}:
                return dict(old)
            return {"source": "store", "provider": "default", "id": name} if name in store else f"${{{name}}}"
        below = old if isinstance(old, Mapping) else {}
        return {key: native(item, store, below.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [native(item, store) for item in value]
    return value
