"""What a credential looks like, by key and by value: the one list that the loader and every provider use (L5)."""

from __future__ import annotations

import re
from functools import lru_cache

# Ends of a lower-cased key that make it credential-shaped, and the keys that end so and are none.
_KEY_ENDS = ("token", "key", "secret", "password", "credential")
_NOT_SECRET_KEYS = frozenset({"sessionkey", "session_key", "storekey", "store_key"})

# Each begins with a literal, so that one search over a whole file stays cheap.
_PATTERNS = tuple(
    re.compile(p)
    for p in (
        r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}",
        r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{20,}",
        r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,}",
        r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{10,}",
        r"(?<![A-Za-z0-9])xapp-[A-Za-z0-9-]{10,}",
        r"(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Za-z0-9])",
        r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
        r"[Bb]earer +[A-Za-z0-9._~+/=-]{20,}",
        r"(?<![A-Za-z0-9])vib_[A-Za-z0-9_-]{16,}",
    )
)
_LITERALS = (
    "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "xapp-", "AKIA", "AIza", "eyJ",
    "-----BEGIN ", "earer ", "vib_",
)  # fmt: skip
_SHORTEST = 15  # no pattern matches less
_TELEGRAM = re.compile(r"(?<![0-9])[0-9]{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")


# An address with a password in it; one that only names or masks it (`${NAME}`, `<password>`, `***`) is none.
# Its scheme is short, so that no long word is looked through from each of its letters.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^/\s@:]*:(?![$<{*])[^/\s@]+@\S*")


def looks_secret(text: str) -> bool:
    """Whether `text` holds something that looks like a live credential (a known token form, anywhere in it), or is an
    address with a password in it."""
    if len(text) < _SHORTEST:
        return False
    if ":" in text and (_TELEGRAM.search(text) or ("@" in text and is_address(text))):
        return True
    # A plain loop: this runs for every value of every home, and a generator would cost more than the search.
    for literal in _LITERALS:
        if literal in text:
            return any(p.search(text) for p in _PATTERNS)
    return False


def is_address(text: str) -> bool:
    """Whether `text` is an address with a password in it."""
    return _ADDRESS.fullmatch(text) is not None


def may_hold_secret(text: str) -> bool:
    """Whether one of the values that a text is made of may look like a credential: one search for all of them."""
    return looks_secret(text) or bool("@" in text and _ADDRESS.search(text))


@lru_cache(maxsize=4096)
def secret_key(key: str) -> bool:
    """Whether a value under `key` would be a credential. For a dotted key its last segment counts."""
    low = key.rstrip('"').lower()
    if not low.endswith(_KEY_ENDS):
        return False
    return low.rpartition(".")[2] not in _NOT_SECRET_KEYS
