"""Meeting: where the runs of one home meet, so that one of them writes at a time (L13)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from reconciler_state.local import LocalStore
from reconciler_state.lock import lock_home
from reconciler_state.store import Physical


@contextmanager
def locked(home: Physical, store: LocalStore, wait: float, directory: Path | None) -> Iterator[int]:
    """Holds the home's lock, and gives its descriptor. Raises StateLocked, naming the holder, after `wait` seconds.

    `directory` is the home's own, None where it is not made yet or not on this machine. Runs from this machine meet at
    a folder of the state, which is there before the home is; whoever comes from elsewhere meets us at the home itself
    (at another place the worker holds it).
    """
    command = " ".join(["reconciler", *sys.argv[1:2]])
    meeting = store.root / "locks" / home.key
    store.files.mkdir(meeting)
    with ExitStack() as held:

        def take(folder: Path, announce: bool) -> int:
            return held.enter_context(
                lock_home(folder, home, store.root, command=command, wait=wait, announce=announce)
            ).fd

        fd = take(meeting, announce=directory is None)
        yield fd if directory is None else take(directory, announce=True)
