"""One running home per OpenClaw version and session: a gateway takes ten seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw import lab as labs


@pytest.fixture(scope="session", params=labs.VERSIONS)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[labs.Lab]:
    """A home that all tests of a version share: they add to it and take nothing away that is not theirs."""
    lab = labs.make(Path(os.path.realpath(tmp_path_factory.mktemp("user"))), str(request.param))
    yield lab
    lab.stop()


@pytest.fixture
def served(shared: labs.Lab) -> labs.Lab:
    """The shared home with its gateway, which is started where a test has stopped it."""
    if shared.gateway is None:
        shared.start()
    return shared


@pytest.fixture(autouse=True)
def at_home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """We run as the home's owner: the same HOME as its gateway."""
    if "shared" in request.fixturenames:
        monkeypatch.setenv("HOME", str(request.getfixturevalue("shared").user))
