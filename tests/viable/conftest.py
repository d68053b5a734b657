"""The sandbox, served in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reconciler_viable.sandbox import TOKEN, Sandbox
from reconciler_viable.serving import running
from viable.lab import VARIABLE, Shop

Make = Callable[..., Shop]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Serves a sandbox of a mood; the project and the ceiling in seconds are the setup's."""
    monkeypatch.setenv(VARIABLE, TOKEN)
    # A proxy that is not there: the credential goes to the one origin that the setup names.
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ExitStack() as stack:

        def shop(mood: str = "well-behaved", trick: str = "", *, late: float = 60.0, **more: object) -> Shop:
            app = Sandbox(mood, seconds=late, trick=trick)
            return Shop(tmp_path, stack.enter_context(running(app)), app, **more)  # type: ignore[arg-type]

        yield shop


@pytest.fixture
def shop(make: Make) -> Shop:
    return make()
