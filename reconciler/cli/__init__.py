"""The command line: a command parses, calls one function and renders. `main` is the console script."""

from __future__ import annotations


def main(argv: list[str] | None = None) -> None:
    """Runs one command and exits with its code (laws, “Exit codes”). Never returns."""
    import gc
    import os
    import sys
    from io import TextIOWrapper

    # A short-lived process: collecting cycles, from the first import on, costs more than it frees.
    gc.disable()
    words = sys.argv[1:] if argv is None else argv
    if sys.stdout is None or sys.stderr is None:
        # Somebody closed it (`>&-`): there is nobody to tell, and the descriptor's number is free for any file.
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a word shows its code
    code = _provided(words)
    if code is not None:
        sys.exit(code)
    # Looking for pydantic plugins reads the metadata of every installed package, and we use none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from .app import run

    sys.exit(run(words))


def _provided(words: list[str]) -> int | None:
    """The exit code of a provider's own program, the module `reconciler_WORD.program`: None if there is none, or the
    words are not for it.

    It starts without our parser and its libraries, for verbs that scripts call often.
    """
    from importlib import import_module

    if len(words) < 2 or not words[0].isidentifier():
        return None
    name = f"reconciler_{words[0]}.program"
    try:
        program = import_module(name)
    except ModuleNotFoundError as error:
        if error.name in (name, name.partition(".")[0]):
            return None
        raise
    code: int | None = program.main(words[1:])
    return code
