"""The command line: a command parses, calls one function and renders. `main` is the console script."""

from __future__ import annotations


def main(argv: list[str] | None = None) -> None:
    """Runs one command and exits with its code (laws, “Exit codes”). Never returns."""
    import os
    import sys

    # Looking for pydantic plugins reads the metadata of every installed package, and we use none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from .app import run

    sys.exit(run(sys.argv[1:] if argv is None else argv))
