"""One running home per OpenClaw version and session: a gateway takes ten seconds to start."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw import lab as labs
from openclaw import life as lives


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


@pytest.fixture(scope="session", params=labs.VERSIONS)
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[lives.House, lives.Decoy]]:
    """A home that is stopped at first, and its decoy."""
    user = Path(os.path.realpath(tmp_path_factory.mktemp("user")))
    found = lives.make(user, str(request.param))
    with lives.decoy(user, tmp_path_factory.mktemp("decoy")) as decoy:
        yield found, decoy
    found.stop()


@pytest.fixture
def life(
    house: tuple[lives.House, lives.Decoy],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[lives.Life]:
    """What the test's own setup makes of the shared home; the caller's environment is all the decoy's."""
    found, decoy = house
    monkeypatch.setenv("HOME", str(found.user))
    for name, value in decoy.env.items():
        monkeypatch.setenv(name, value)
    yield lives.life(found, decoy, Path(os.path.realpath(tmp_path)), f"t{zlib.crc32(request.node.name.encode()):x}")
    assert decoy.untouched(), "the decoy has changed, or was asked"
