"""What a person most likely meant where YAML stumbles: one hint per row of the setup language's trap table."""

from __future__ import annotations

import re

# A `#` right before a word, behind a plain value: to YAML a comment, to its author part of the text.
COMMENT = re.compile(r"[ \t]+#[^\s#]")

_CRON = re.compile(r"\*/[0-9]|(?:^|[\s:{,])[*0-9][0-9*/,-]*(?: [*0-9][0-9*/,A-Za-z-]*){3,}")
_QUOTED_SEGMENT = re.compile(r"""\s*"[^"]*"\.[^:]*:""")
_TEMPLATE = re.compile(r"\{\{|\{%")
TEXTS = "put texts in quotes or after `|`"


def hint_for(problem: str, line: str) -> str:
    """The hint for libyaml's `problem` on `line`; "" if nothing special is known. Never repeats the line."""
    if _CRON.search(line):
        return 'quote the cron line: cron: "*/5 * * * *"'
    if _QUOTED_SEGMENT.match(line):
        return "a key that starts with a quoted segment: put the whole key in single quotes"
    if "tab character" in problem or (line[:1] == "\t"):
        return "indent with spaces, not with tabs"
    if "unexpected ':'" in problem:
        return 'a value with a colon in { } or [ ]: quote it, as in {a: "viable:project"}'
    if _TEMPLATE.search(line):
        return f"a text with braces: {TEXTS}"
    if "mapping values are not allowed" in problem:
        return f"a text with a colon: {TEXTS}"
    if "alias" in problem:
        return f"a text that starts with *: {TEXTS}"
    if "cannot start any token" in problem:
        return f"a text that starts with @, ` or %: {TEXTS}"
    if "unexpected end of stream" in problem or "quoted scalar" in problem:
        return "a quote is not closed"
    return ""
