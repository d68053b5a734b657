"""The program: its commands, and the one place where errors become words and exit codes."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from reconciler_specs.errors import ReconcilerError

from .examples import epilog
from .group import Group
from .render.style import Unread

# The modules of this package that bring the commands, in the order of --help.
COMMANDS = {
    "init": "setup",
    "validate": "setup",
    "explain": "setup",
    "adopt": "adopt",
    "copy": "copy",
    "plan": "plan",
    "approve": "approve",
    "apply": "apply",
    "provision": "apply",
    "capture": "capture",
    "release": "capture",
    "status": "show",
    "show": "show",
    "history": "history",
    "observe": "observe",
    "doctor": "doctor",
    "state": "state",
    "gitops": "gitops",
}
WRITING = frozenset({"adopt", "apply", "provision", "capture", "release", "gitops"})
app = typer.Typer(
    name="reconciler",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_added: set[str] = set()
_modules: set[str] = set()


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"reconciler {version('agent-home-reconciler')}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Plan and apply what setup.yaml declares to the homes of AI agents."""


def run(argv: Sequence[str]) -> int:
    """The exit code of one command line. Bad input is told in words, without a traceback."""
    # A short-lived process: collecting cycles costs more than it frees.
    gc.disable()
    before_dashes = list(argv[: argv.index("--")] if "--" in argv else argv)
    if "-n" in before_dashes or "--dry-run" in before_dashes:
        print("There is no dry run: that is `reconciler plan`, which only reads.", file=sys.stderr)
        return 1
    try:
        add_commands(next((a for a in argv if not a.startswith("-")), ""))
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
    except (BrokenPipeError, Unread):
        return _silenced(0, argv)
    except OSError as error:
        # What commands read and write has its own words; left is our own output (a full disk behind it).
        print(f"The output cannot be written ({error.strerror or error}).", file=sys.stderr)
        return _silenced(1, argv)
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


def _silenced(code: int, argv: Sequence[str]) -> int:
    """The reader (head, less) went away, or the disk is full: keep Python from complaining again at exit.

    A command that writes may have been cut off by it: that is no success, and not “nothing was done” either.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not WRITING & set(argv[:1]):
        return code
    print("The output ended before the run did. What was begun is in the journal; the next run looks.", file=sys.stderr)
    return 6


def _interrupted() -> int:
    print("\nInterrupted. What was begun is in the journal; the next run looks.", file=sys.stderr)
    return 6


def add_commands(command: str = "") -> None:
    """Puts one command into `app` (with the others of its module), so that it starts no slower for the rest.

    What is not ours may be a provider's (entry point group `reconciler.commands`). Without a command, or for a word
    that is none, all are put in.
    """
    if command in _added:
        return
    _added.add(command)
    if command in COMMANDS:
        _add(COMMANDS[command])
        return
    from importlib.metadata import entry_points

    if command:
        found = list(entry_points(group="reconciler.commands", name=command))
        for entry in found:
            entry.load()(app)
        if found:
            return
    for module in dict.fromkeys(COMMANDS.values()):
        _add(module)
    for entry in entry_points(group="reconciler.commands"):
        entry.load()(app)


def _add(module: str) -> None:
    if module not in _modules:
        _modules.add(module)
        import_module(f"{__package__}.{module}").register(app)
        for command in app.registered_commands:
            command.epilog = command.epilog or epilog(command.name or "")


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
