"""Secrets on a native home: the verbs, and a setup's rows through both doors; no value comes out anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from native.lab import do, refused
from reconciler.apply import apply
from reconciler.consent import Consent
from reconciler.event import Outcome
from reconciler.plan import Options
from reconciler.workspace import Workspace
from reconciler_native import PROVIDER, lease
from reconciler_native.home import init
from reconciler_specs.load import load_text
from reconciler_state.local import LocalStore

FIRST, SECOND = "canary-first-4711", "canary-second-0815"


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ("", f"TOKEN={FIRST}\n"),
        ("# mine\nA=1\nTOKEN=old\n\nB='x'\n", f"# mine\nA=1\nTOKEN={FIRST}\n\nB='x'\n"),
        ("TOKEN=one\nexport TOKEN=two\n", f"TOKEN=one\nTOKEN={FIRST}\n"),  # the last of two is the one that counts
        ("A=1", f"A=1\nTOKEN={FIRST}\n"),
    ],
)
def test_a_value_goes_to_the_line_that_counts_and_no_other_changes(home: Path, lines: str, want: str) -> None:
    (home / ".env").write_text(lines)
    answer = do(home, "secrets.set", name="TOKEN", value=FIRST)
    assert (home / ".env").read_text() == want and FIRST not in json.dumps(answer)
    assert (home / ".env").stat().st_mode & 0o777 == 0o600
    do(home, "secrets.unset", name="TOKEN")
    assert "TOKEN" not in (home / ".env").read_text()


def test_what_such_a_file_cannot_hold_is_refused_without_the_value(home: Path) -> None:
    for args in ({"name": "A B", "value": FIRST}, {"name": "A", "value": f"{FIRST}\nx"}, {"name": "A", "value": ""}):
        assert FIRST not in refused(home, "secrets.set", **args)
    assert "has no secret A" in refused(home, "secrets.unset", name="A")


class Lab:
    """A setup with one secret on a native home."""

    def __init__(self, root: Path) -> None:
        self.root = root
        init(root / "home")

    def space(self) -> Workspace:
        text = (
            "version: 1\nname: solo\nsecrets: {API_KEY: {env: SOURCE}, CODER_KEY: {env: SOURCE}}\nhomes:\n  main:\n"
            f"    harness: native\n    path: {self.root}/home\n    first_contact: adopt\n    profiles:\n"
            "      default:\n        settings: {x.api_key: {secret: API_KEY}}\n"
            "      coder:\n        settings: {x.api_key: {secret: CODER_KEY}}\n"
        )
        setup = load_text(text, "setup.yaml", self.root)
        return Workspace(setup, LocalStore(self.root / "state"), {"native": PROVIDER})

    def apply(self) -> list[Outcome | None]:
        space = self.space()
        plan = space.plan(Options())
        rows = frozenset(digest for h in plan.homes for digest in h.asked)
        events = list(apply(plan, Consent(yes=True, approved=rows, terminal=True, reviewed=True), space, Options()))
        assert FIRST not in repr((plan, events)) and SECOND not in repr((plan, events))
        return [e.outcome for e in events if e.what == "outcome"]

    def open(self) -> int:
        return sum(len(h.open) for h in self.space().plan(Options()).homes)


@pytest.mark.parametrize("live", [False, True])
def test_rows_through_both_doors(live: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(tmp_path)
    home = tmp_path / "home"
    argv = [sys.executable, "-m", "reconciler", "native", "serve", "--root", str(home)]
    daemon = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) if live else None
    try:
        if daemon is not None:
            assert daemon.stdout is not None and "ready" in daemon.stdout.readline()
            assert lease.inspect(home).state is lease.State.LIVE
        for value in (FIRST, SECOND):
            monkeypatch.setenv("SOURCE", value)
            assert set(lab.apply()) == {Outcome.APPLIED}
            assert f"API_KEY={value}\n" in (home / ".env").read_text()
            assert f"CODER_KEY={value}\n" in (home / "profiles/coder/.env").read_text()
            assert lab.open() == 0
        state = "".join(p.read_text() for p in (tmp_path / "state").rglob("*.json*"))
        assert FIRST not in state and SECOND not in state
    finally:
        if daemon is not None:
            daemon.terminate()
            daemon.wait(20)
    if daemon is not None:
        assert FIRST not in daemon.communicate()[0]


def test_an_env_that_changed_since_the_plan_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tmp_path)
    monkeypatch.setenv("SOURCE", FIRST)
    lab.apply()
    assert lab.open() == 0
    (tmp_path / "home/.env").write_text("API_KEY=somebody-elses\n")
    found = {str(a.address): a for a in lab.space().plan(Options()).homes[0].actions}
    assert found["main/secrets/API_KEY"].held_fields
