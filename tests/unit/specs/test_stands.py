"""A copy of a setup: what is not part of it stays where the original stands."""

from __future__ import annotations

from pathlib import Path

from reconciler_specs.address import Kind
from reconciler_specs.load import load

SETUP = """\
version: 1
name: solo
include: [more/*.yaml]
secrets: {A_TOKEN: {file: secrets/a}, B_TOKEN: {file: /b}}
homes:
  one: {harness: native, path: ./one, secrets: {A_TOKEN: {file: secrets/a}}}
  home: {harness: native, path: ~/home}
"""


def test_homes_and_files_of_secrets_stay(tmp_path: Path) -> None:
    copy, original = tmp_path / "copy", tmp_path / "original"
    (copy / "more").mkdir(parents=True)
    (copy / "setup.yaml").write_text(SETUP)
    (copy / "more" / "two.yaml").write_text("homes: {two: {harness: native, path: ../two}}\n")
    setup = load(copy / "setup.yaml", stands=original)
    paths = {home.id: home.path for home in setup.homes.values()}
    assert paths == {"one": f"{original}/one", "two": f"{original}/two", "home": "~/home"}
    sources = [r.fields["value"] for a, r in setup.desired("one").items() if a.kind is Kind.SECRET]
    assert sources == [{"file": f"{original}/secrets/a"}]
    assert setup.stands == original and setup.root == copy / "setup.yaml"
    assert load(copy / "setup.yaml").stands == copy
