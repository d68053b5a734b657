"""Secret values become `{"$hidden": digest}` before anything else sees them (L5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from reconciler_specs.secrets import looks_secret, secret_key

from .record import digest

HIDDEN = "$hidden"
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
# The ends of credential-shaped keys; the last one is a key with an escape at its end, which may be anything.
_CREDENTIALS = ('token": ', 'key": ', 'secret": ', 'password": ', 'credential": ', ' ": ')
_SHORTEST = 8  # a shorter value would blot out words that are none


class Hider:
    """Hides by key, by look, and by value: `secrets` are the values of the home's own `.env` files."""

    def __init__(self, key: bytes, secrets: Iterable[str] = ()) -> None:
        self.key = key
        # The longest first, or a shorter one would leave the tail of a longer one.
        self._secrets = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)
        self._odd = any(json.dumps(secret, ensure_ascii=False)[1:-1] != secret for secret in self._secrets)

    def value(self, value: Any, under: str = "", forced: bool = False) -> Any:
        """`value` with every secret in it hidden; `under` is the key that it stands under."""
        forced = forced or secret_key(under)
        if isinstance(value, dict):
            if forced and set(value) in ({"secret"}, {"dotenv"}):
                return value  # a reference, that is only a name
            return {key: self.value(item, str(key), forced) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, under, forced) for item in value]
        return {HIDDEN: digest(value, self.key)} if self._is_secret(value, forced) else value

    def whole(self, value: Any) -> Any:
        """As `value`, for something large: where its text shows nothing to hide, it is not walked through."""
        text = _ESCAPE.sub(" ", json.dumps(value, ensure_ascii=False))
        low = text.lower()
        under = any(end in low for end in _CREDENTIALS)
        if self._odd or under or looks_secret(text) or any(secret in text for secret in self._secrets):
            return self.value(value)
        return value

    def text(self, text: str) -> str:
        """Words for a person (an error) with what is secret in them blotted out."""
        for secret in self._secrets:
            text = text.replace(secret, "‹hidden›")
        return " ".join("‹hidden›" if looks_secret(word) else word for word in text.split(" "))

    def _is_secret(self, value: Any, forced: bool) -> bool:
        if isinstance(value, bool) or value is None or value == "":
            return False
        if isinstance(value, str):
            if _REFERENCE.fullmatch(value):
                return False
            return forced or looks_secret(value) or any(secret in value for secret in self._secrets)
        return forced


def is_hidden(value: Any) -> bool:
    """Whether `value` is, or holds, something hidden."""
    if isinstance(value, dict):
        return HIDDEN in value or any(is_hidden(item) for item in value.values())
    return isinstance(value, list) and any(is_hidden(item) for item in value)
