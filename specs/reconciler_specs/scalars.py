"""Plain scalars by YAML 1.2's core schema; numbers whose text their value would lose keep it."""

from __future__ import annotations

import re
from typing import Any

MAX_NUMBER = 400  # characters; Python refuses to read far longer ones


class OddInt(int):
    """A whole number whose text is not its plain decimal form (`0123`, `0x1f`): fine as a number, never as an id."""

    text: str

    def __new__(cls, value: int, text: str) -> OddInt:
        self = super().__new__(cls, value)
        self.text = text
        return self


class OddFloat(float):
    """A number whose text its value does not give back (`0.20`, `1e3`): fine as a number, never as an id."""

    text: str

    def __new__(cls, value: float, text: str) -> OddFloat:
        self = super().__new__(cls, value)
        self.text = text
        return self


class _TooLong:
    pass


TOO_LONG = _TooLong()
MAYBE_TYPED = frozenset([*"0123456789+-.~nNtTfF", ""])
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INT = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")


def resolve(text: str) -> Any:
    """A plain scalar's value by YAML 1.2's core schema; numbers with an odd text keep it."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        if len(text) > MAX_NUMBER:
            return TOO_LONG
        number = int(text)
        return number if str(number) == text else OddInt(number, text)
    if _BASED.match(text):
        return TOO_LONG if len(text) > MAX_NUMBER else OddInt(int(text, 0), text)
    if _FLOAT.match(text):
        real = float(text)
        return real if repr(real) == text else OddFloat(real, text)
    return text
