"""Plain JSON values: from YAML's, compared, and as keyed digests."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

NATIVE = "$native"
"""The key of a mark: what the setup's words, or JSON, cannot say. It equals nothing declared."""
HIDDEN = "$hidden"
"""The key of a mark that stands for a secret value: its keyed digest."""


def native(value: Any) -> dict[str, Any]:
    return {NATIVE: value}


def is_native(value: Any) -> bool:
    """Whether `value` itself is such a mark."""
    return isinstance(value, dict) and NATIVE in value


def holds_native(value: Any) -> bool:
    """Whether such a mark is anywhere in `value`."""
    if isinstance(value, dict):
        return NATIVE in value or any(holds_native(item) for item in value.values())
    return isinstance(value, list) and any(holds_native(item) for item in value)


def digest(value: Any, key: bytes) -> str:
    """A keyed digest of a JSON value: without the key a short secret could be guessed from it."""
    import hashlib  # with the machine's cryptography, which is slow to load
    import hmac

    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]


def to_json(value: Any) -> Any:
    """YAML's value as plain JSON without shared parts: dates, NaN and bytes become `{"$native": text}`, keys text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, datetime.date):
        return native(value.isoformat())
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return native(str(value))


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def same(left: Any, right: Any) -> bool:
    """Equality that tells `1`, `1.0` and `True` apart, and not the order of keys."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (left != left and right != right))
