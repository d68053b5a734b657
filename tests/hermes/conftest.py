"""Fixtures for tests against the real Hermes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.lab import VERSIONS, Lab


def _lab(tmp_path: Path, version: str) -> Lab:
    root = tmp_path / ".hermes"
    root.mkdir(mode=0o700)
    (root / "config.yaml").write_text("_config_version: 33\nmodel: {default: a/b, provider: openrouter}\n")
    (root / ".env").write_text("OPENROUTER_API_KEY=not-a-real-key-0123456789\nTELEGRAM_HOME_CHANNEL=-100123\n")
    (root / "scripts").mkdir()
    (root / "scripts" / "disk.sh").write_text("df\n")
    return Lab(root, version)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A home of the newest tested Hermes."""
    return _lab(tmp_path, VERSIONS[0])


@pytest.fixture(params=VERSIONS)
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    """A home of each tested Hermes."""
    return _lab(tmp_path, str(request.param))
