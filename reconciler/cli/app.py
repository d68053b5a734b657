"""The program: its commands, and the one place where errors become words and exit codes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

import typer

from reconciler_specs.errors import ReconcilerError

from . import adopt, apply, capture, doctor, plan, setup, show, state

app = typer.Typer(
    name="reconciler",
    help="Plan and apply what setup.yaml declares to the homes of AI agents.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (setup, adopt, plan, apply, capture, show, doctor, state):
    module.register(app)


def run(argv: Sequence[str]) -> int:
    """The exit code of one command line. Bad input is told in words, without a traceback."""
    # A short-lived process: collecting cycles costs more than it frees.
    gc.disable()
    before_dashes = list(argv[: argv.index("--")] if "--" in argv else argv)
    if "-n" in before_dashes or "--dry-run" in before_dashes:
        print("There is no dry run: that is `reconciler plan`, which only reads.", file=sys.stderr)
        return 1
    try:
        _extend(next((a for a in argv if not a.startswith("-")), ""))
        result = app(list(argv), standalone_mode=False)
        sys.stdout.flush()
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        print("Stopped; nothing more was done.", file=sys.stderr)
        return 1
    except ReconcilerError as error:
        _tell(error)
        return 1
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        return _silenced(0)
    except OSError as error:
        # What commands read and write has its own words; left is our own output (a full disk behind it).
        print(f"The output cannot be written ({error.strerror or error}).", file=sys.stderr)
        return _silenced(1)
    except Exception as error:
        code = _usage(error)
        if code is None and os.environ.get("RECONCILER_DEBUG"):
            raise
        if code is None:
            print(f"reconciler has a bug: {type(error).__name__}. Run again with RECONCILER_DEBUG=1.", file=sys.stderr)
        return 1
    if result == 130:  # the parser's word for Ctrl-C; no command of ours ends with it
        return _interrupted()
    return result if isinstance(result, int) else 0


def _silenced(code: int) -> int:
    """The reader (head, less) went away, or the disk is full: keep Python from complaining again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _interrupted() -> int:
    print("\nInterrupted. What was begun is in the journal; the next run looks.", file=sys.stderr)
    return 6


def _extend(command: str) -> None:
    """Adds a command that a provider brings (entry point group `reconciler.commands`), if one is asked for.

    Only then: the program starts no slower for providers that are not used.
    """
    known = {c.name for c in app.registered_commands} | {g.name for g in app.registered_groups}
    if command and command not in known:
        from importlib.metadata import entry_points

        for entry in entry_points(group="reconciler.commands", name=command):
            entry.load()(app)


def _tell(error: ReconcilerError) -> None:
    from .render.style import safe

    print(safe(str(error)), file=sys.stderr)
    if error.hint:
        print(f"  next: {safe(error.hint)}", file=sys.stderr)


def _usage(error: Exception) -> int | None:
    """1 for what the command-line parser refuses (its own 2 means something else here), None for anything else."""
    show = getattr(error, "show", None)
    if show is None or not hasattr(error, "exit_code"):
        return None
    show()
    return 1
