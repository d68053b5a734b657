"""Copies that hold a secret's value are found by digest; live files, other values and links are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import doctor
from reconciler.leftovers import Leftover, leftovers
from reconciler.place import LocalPlace
from reconciler.redact import HIDDEN, hide
from world import HEAD, World

KEY = bytes(32)
NOW, OLD = "canary-now-4711", "123456:canary-old-0815"
DIGESTS = {hide(NOW, KEY)[HIDDEN]: "TOKEN"}, {hide(OLD, KEY)[HIDDEN]: "TOKEN"}

FILES: dict[str, tuple[str, bool | None]] = {
    ".env": (f"TOKEN={NOW}\n", None),
    ".env.bak": (f"A=1\nexport TOKEN={OLD}\n", True),
    "config.yaml.corrupt.1700": (f"model:\n  api_key: {NOW}\n", False),
    "openclaw.json.rejected.1": (f'{{"token": "{OLD}", "x": 1}}', True),
    ".reconciler-trash/coder/config.yaml": (f"- {OLD}\n", True),
    "backups/old/notes.txt": (f"the token was {OLD}.\nsee {OLD}\n", True),
    "notes.txt~": (f"xx{OLD}\n", None),
    "memories/MEMORY.md": (f"TOKEN={OLD}\n", None),
}


@pytest.mark.parametrize("path", FILES)
def test_found(path: str, tmp_path: Path) -> None:
    text, former = FILES[path]
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    want = [] if former is None else [Leftover(str(file), "TOKEN", former)]
    assert list(leftovers(LocalPlace(), str(tmp_path), KEY, *DIGESTS)) == want


def test_links_and_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "out.bak").write_text(OLD)
    (tmp_path / "home" / "a.bak").symlink_to(tmp_path / "out.bak")
    (tmp_path / "home" / "backup").symlink_to(tmp_path)
    (tmp_path / "home" / "b.bak").write_bytes(b"\xff\x00" + OLD.encode())
    assert list(leftovers(LocalPlace(), str(tmp_path / "home"), KEY, *DIGESTS)) == []


def test_doctor_knows_the_value_that_a_rotation_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    world.home()
    world.setup(
        f"{HEAD}secrets: {{BOT_TOKEN: {{env: SOURCE}}}}\nhomes:\n  main:\n    harness: hermes\n    path: HOME/main\n"
        "    first_contact: adopt\n    profiles:\n      default:\n        settings: {a.token: {secret: BOT_TOKEN}}\n"
    )
    for value in (OLD, NOW):
        monkeypatch.setenv("SOURCE", value)
        world.apply()
    (tmp_path / "main" / "config.yaml.bak").write_text(f"token: {OLD}\n")
    found = [f for f in doctor.secrets(world.space(), None) if f.bad]
    assert len(found) == 1
    assert "config.yaml.bak holds an earlier value of BOT_TOKEN" in found[0].what and OLD not in found[0].what
