"""The plain part of YAML that needs no library: block mappings of words, whole numbers, true and false.

Most homes' `config.yaml` is that and no more, and the library is a fifth of what a cold verb takes to start. What is
not plainly plain is not read here. tests/unit/native/test_plainyaml.py holds it to what the library reads.
"""

from __future__ import annotations

import re
from typing import Any

_WORD = r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*"
_ADDRESS = r"https?://[A-Za-z0-9_./:-]*[A-Za-z0-9_/]"
_REFERENCE = r"\$\{[A-Za-z0-9_]+\}"
_VALUE = rf"(0|[1-9][0-9]{{0,14}})|({_WORD}|{_ADDRESS}|{_REFERENCE})|\"([^\"\\]*)\"|'([^']*)'"
_LINE = re.compile(rf"( *)([A-Za-z_][A-Za-z0-9_]*):(?: +(?:{_VALUE}))?(?: +#.*| *)")
_NOTHING = re.compile(r" *(?:#.*)?")
_PRINTABLE = re.compile(rb"[\n\x20-\x7e]*")
_BOOLS = {"true": True, "false": False}
# Words that are no texts, or none in some YAML.
_OTHER = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})
_LONGEST = 500  # characters of a line


def read(data: bytes) -> dict[str, Any] | None:
    """The mapping, None for what only the library can judge."""
    if not _PRINTABLE.fullmatch(data):
        return None
    root: dict[str, Any] = {}
    levels = [(0, root)]
    open_key = ""  # the last line's key, if nothing stood behind it
    for line in data.decode("ascii").split("\n"):
        if _NOTHING.fullmatch(line):
            continue
        match = _LINE.fullmatch(line)
        if match is None or len(line) > _LONGEST:
            return None
        indent, key = len(match[1]), match[2]
        if indent > levels[-1][0]:
            if not open_key:
                return None
            below: dict[str, Any] = {}
            levels[-1][1][open_key] = below
            levels.append((indent, below))
        while indent < levels[-1][0]:
            levels.pop()
        here = levels[-1][1]
        if indent != levels[-1][0] or key in here or key.lower() in _OTHER:
            return None
        number, word, double, single = match.groups()[2:]
        if word is not None and word not in _BOOLS and word.lower() in _OTHER:
            return None
        texts = [text for text in (double, single) if text is not None]
        if number is not None:
            here[key] = int(number)
        elif word is not None:
            here[key] = _BOOLS.get(word, word)
        else:
            here[key] = texts[0] if texts else None
        open_key = "" if number or word or texts else key
    return root
