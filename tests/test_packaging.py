"""What is installed: every package folder is in the wheel, and every provider enters by entry point."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Names that a harness installs itself: a wheel with one of them would overwrite the harness's.
NEVER = {"providers", "tools", "cron", "utils", "agent", "specs", "state", "tests", "gateway", "plugins"}


def folders() -> set[str]:
    """The package folders of the four layers."""
    roots = [p for top in ("specs", "state", "providers") for p in (ROOT / top).iterdir()]
    return {"reconciler"} | {str(p.relative_to(ROOT)) for p in roots if (p / "__init__.py").exists()}


def test_every_package_is_listed() -> None:
    assert set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == folders()


def test_every_provider_has_an_entry_point() -> None:
    listed = {e.value.partition(":")[0] for e in entry_points(group="reconciler.providers")}
    shared = {"reconciler_shape"}  # what several providers are made of, and none itself
    assert listed == {Path(f).name for f in folders() if f.startswith("providers/")} - shared
    for entry in entry_points(group="reconciler.providers"):
        assert entry.load().harness == entry.name


def test_source_roots_are_no_packages() -> None:
    for top in ("specs", "state", "providers"):
        assert not (ROOT / top / "__init__.py").exists()


def test_the_wheel_holds_what_it_should(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "-w", str(tmp_path), str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {n.partition("/")[0] for n in names if not n.partition("/")[0].endswith(".dist-info")}
    assert tops == {Path(f).name for f in folders()}
    assert not tops & NEVER
    assert "reconciler_specs/schema/setup.v1.schema.json" in names
    for path in (ROOT / "specs/reconciler_specs/kits").glob("*.yaml"):
        assert f"reconciler_specs/kits/{path.name}" in names
    for folder in folders():
        for path in (ROOT / folder).rglob("*.py"):
            if "__pycache__" not in path.parts:
                assert f"{Path(folder).name}/{path.relative_to(ROOT / folder)}" in names
