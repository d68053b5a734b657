"""Style: colour where a person looks at a terminal, and nowhere else; text made safe to print."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from ...redact import scrub

_CODES = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}


class Style:
    """Paints for one stream: ANSI codes on a terminal unless NO_COLOR is set, plain text else."""

    def __init__(self, stream: TextIO) -> None:
        terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = terminal and not os.environ.get("NO_COLOR")

    def __call__(self, text: str, *names: str) -> str:
        if not self.colour or not names or not text:
            return text
        return f"\x1b[{';'.join(_CODES[n] for n in names)}m{text}\x1b[0m"


class Unread(Exception):
    """Nobody reads our output any more. No OSError: the command-line parser would end the program with a code of its
    own, whatever was done by then."""


def out(text: str = "") -> None:
    """One line (or several) to stdout. Raises Unread."""
    try:
        print(text, file=sys.stdout)
    except BrokenPipeError as error:
        raise Unread from error


def err(text: str) -> None:
    """One line to stderr."""
    print(text, file=sys.stderr)


def safe(text: str) -> str:
    """Control and bidi characters escaped, token-looking parts hidden: what a home says may be hostile."""
    return scrub(text)


def width() -> int:
    """Columns to fill: the terminal's, between 60 and 140; 100 where there is none."""
    try:
        return max(60, min(140, os.get_terminal_size(sys.stdout.fileno()).columns))
    except (OSError, ValueError):
        return 100
