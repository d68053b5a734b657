"""What people and terminals may see: secrets as keyed digests, no live token, no control character (L5)."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any, Final, TypeGuard

from reconciler_specs.secrets import looks_secret
from reconciler_specs.shape import Json

HIDDEN: Final = "$hidden"
BLOT: Final = "‹hidden›"

# C0 and C1 but for tab and newline; bidi marks and overrides; invisible characters and line separators that are
# none to us; tag characters; lone surrogates, which no terminal can be sent.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-*|\Z)", re.DOTALL)
_BEARER = re.compile(r"(?<=[Bb]earer )[ ]*[A-Za-z0-9._~+/=-]{20,}")
_WORD = re.compile(r"[A-Za-z0-9_.:-]{12,}")
# Whose it is, and the password, of an address; of one that is only named (`${NAME}`) or masked nothing.
_PASSWORD = re.compile(r"(?<=://)[^/\s@:]*:(?![$<{*])[^/\s@]+(?=@)")


def hide(value: Json, key: bytes) -> dict[str, str]:
    """`{"$hidden": digest}`: equal values in one home have equal digests, and without the home's key it says nothing.

    The digest is the one that the providers' workers make of the same value.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return {HIDDEN: hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]}


def is_hidden(value: Any) -> TypeGuard[dict[str, str]]:
    """Whether a value stands for a secret."""
    return isinstance(value, dict) and value.keys() == {HIDDEN}


def has_hidden(value: Any) -> bool:
    """Whether a value is a secret's, or holds one."""
    if isinstance(value, dict):
        return is_hidden(value) or any(has_hidden(v) for v in value.values())
    return isinstance(value, list) and any(has_hidden(v) for v in value)


def unsayable(value: Any) -> bool:
    """Whether no setup can say a value: it is, or holds anywhere in it, a hidden secret or a word that only the harness
    has."""
    if isinstance(value, dict):
        return is_hidden(value) or "$native" in value or any(unsayable(v) for v in value.values())
    return isinstance(value, list) and any(unsayable(v) for v in value)


def scrub(text: str) -> str:
    """Text from anywhere, fit for a terminal: what looks like a live token, or is the password in an address, is
    blotted out, control, bidi and invisible characters are written as escapes. Tabs and newlines stay; who prints one
    line replaces them first.
    """
    if "@" in text:
        text = _PASSWORD.sub(BLOT, text)
    if looks_secret(text):
        text = _BEARER.sub(BLOT, _PEM.sub(BLOT, text))
        text = _WORD.sub(lambda m: BLOT if looks_secret(m[0]) else m[0], text)
        if looks_secret(text):  # a form that the patterns above do not cut out: better nothing than a token
            text = BLOT
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
