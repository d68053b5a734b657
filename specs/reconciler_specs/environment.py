"""A map of texts for a process, in which a credential is only named."""

from __future__ import annotations

from typing import Any

from .reading import TEXT, Schema, ref
from .secrets import secret_key
from .shape import Json
from .values import Refusal, described, secret_ref, text

SCHEMA: Schema = {"type": "object", "additionalProperties": {"oneOf": [TEXT, ref("SecretRef")]}}


def environment(value: Any) -> dict[str, Json]:
    """Texts, and `{secret: NAME}` for a credential."""
    if not isinstance(value, dict):
        raise Refusal(f"a map is expected, got {described(value)}")
    found: dict[str, Json] = {}
    for key, item in value.items():
        try:
            found[key] = secret_ref(item) if isinstance(item, dict) or secret_key(key) else text(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return found
