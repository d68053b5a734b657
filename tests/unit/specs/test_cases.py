"""Runs every case of tests/cases/specs: a setup's text, and either all its errors or what it declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler_specs.errors import SpecError
from reconciler_specs.load import load

CASES = sorted((Path(__file__).parents[2] / "cases" / "specs").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=[c.stem for c in CASES])
def test_case(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data: dict[str, Any] = yaml.safe_load(case.read_text())
    for name, text in {"setup.yaml": data["setup"], **data.get("files", {})}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    if "errors" in data:
        with pytest.raises(SpecError) as caught:
            load(Path("setup.yaml"))
        _compare(caught.value, data["errors"])
        return
    setup = load(Path("setup.yaml"))
    for address, want in data["desired"].items():
        found = {str(a): r for a, r in setup.desired(address.partition("/")[0]).items()}[address]
        assert dict(found.fields) == _here(want["fields"], tmp_path)
        assert [str(a) for a in found.needs] == want.get("needs", [])
        assert {k: v.value for k, v in found.modes.items()} == want.get("modes", {})
        assert sorted(found.unset) == want.get("unset", [])
        assert found.protect == want.get("protect", False)
        assert dict(found.options) == want.get("options", {})
        assert found.shapes.keys() == found.fields.keys()


def _here(value: Any, folder: Path) -> Any:
    """`value` with HERE as the setup's folder."""
    if isinstance(value, dict):
        return {key: _here(item, folder) for key, item in value.items()}
    return value.replace("HERE", str(folder)) if isinstance(value, str) else value


def _compare(error: SpecError, wanted: list[list[str]]) -> None:
    """Each wanted (place, fragment, fragment of the hint) is met by a reason of its own, and none is left over."""
    left = list(error.reasons)
    for place, message, hint in wanted:
        full = f"setup.yaml:{place}" if place[:1].isdigit() else place
        hit = next((r for r in left if str(r.where) == full and message in r.message and hint in r.hint), None)
        assert hit is not None, f"no reason {full} {message!r} {hint!r} in\n{error}"
        left.remove(hit)
    assert left == []
    assert error.reasons == sorted(error.reasons)
