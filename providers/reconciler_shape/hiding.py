"""Secret values become `{"$hidden": digest}` before anything else sees them (L5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from reconciler_specs.secrets import looks_secret, may_hold_secret, secret_key

from . import plain
from .plain import digest

HIDDEN = plain.HIDDEN
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
# The ends of credential-shaped keys; the last one is a key with an escape at its end, which may be anything.
_CREDENTIALS = ('token": ', 'key": ', 'secret": ', 'password": ', 'credential": ', ' ": ')
_SHORTEST = 8  # a shorter value would blot out words that are none


class Hider:
    """Hides by key, by look, and by value: `secrets` are the values of the home's own `.env` files.

    The digests are keyed by `key`, which stays at the home's place, so that equal secrets can be told equal in one
    home and nowhere else.
    """

    def __init__(self, key: bytes, secrets: Iterable[str] = ()) -> None:
        self.key = key
        # The longest first, or a shorter one would leave the tail of a longer one.
        self._secrets = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)
        # Values that JSON writes with an escape, so that a text of JSON does not show them.
        self._odd = any(json.dumps(secret, ensure_ascii=False)[1:-1] != secret for secret in self._secrets)

    def with_secrets(self, secrets: Iterable[str]) -> Hider:
        """Another one that knows these values too."""
        return Hider(self.key, [*self._secrets, *secrets])

    def value(self, value: Any, under: str = "", forced: bool = False) -> Any:
        """`value` with every secret in it hidden; `under` is the key that it stands under."""
        forced = forced or secret_key(under)
        if isinstance(value, dict):
            if forced and self._names(value):
                return value
            return {key: self.value(item, str(key), forced) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, under, forced) for item in value]
        return {HIDDEN: digest(value, self.key)} if self._is_secret(value, forced) else value

    def whole(self, value: Any) -> Any:
        """As `value`, for something large: where its text shows nothing to hide, it is not walked through."""
        text = _ESCAPE.sub(" ", json.dumps(value, ensure_ascii=False))
        low = text.lower()
        under = any(end in low for end in _CREDENTIALS)
        if self._odd or under or may_hold_secret(text) or any(secret in text for secret in self._secrets):
            return self.value(value)
        return value

    def text(self, text: str) -> str:
        """Words for a person (an error) with what is secret in them blotted out."""
        for secret in self._secrets:
            text = text.replace(secret, "‹hidden›")
        return " ".join("‹hidden›" if looks_secret(word) else word for word in text.split(" "))

    def _names(self, value: dict[str, Any]) -> bool:
        """Whether it only names a secret; a word that is no name, or looks like a token, may be the secret itself."""
        name = value.get("secret", value.get("dotenv")) if len(value) == 1 else None
        return isinstance(name, str) and bool(_NAME.fullmatch(name)) and not self._is_secret(name, False)

    def _is_secret(self, value: Any, forced: bool) -> bool:
        if isinstance(value, str):
            if not (forced or looks_secret(value) or any(secret in value for secret in self._secrets)):
                return False
            return value != "" and not _REFERENCE.fullmatch(value)
        return forced and not (isinstance(value, bool) or value is None)


def is_hidden(value: Any) -> bool:
    """Whether `value` is, or holds, something hidden."""
    if isinstance(value, dict):
        return HIDDEN in value or any(is_hidden(item) for item in value.values())
    return isinstance(value, list) and any(is_hidden(item) for item in value)
