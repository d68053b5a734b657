"""A setup over one project of the sandbox, through the engine in this process or through the command line."""

from __future__ import annotations

import gc
import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.action import Action
from reconciler.apply import apply
from reconciler.cli.app import run
from reconciler.consent import Consent
from reconciler.plan import Options
from reconciler.testing.kit import outcomes
from reconciler.workspace import Workspace
from reconciler_specs.load import load_text
from reconciler_state.local import LocalStore
from reconciler_viable import PROVIDER
from reconciler_viable.sandbox import TOKEN, Sandbox

VARIABLE = "VIABLE_TEST_TOKEN"
HEAD = "version: 1\nname: solo\nhomes:\n  shop:\n    harness: viable\n    first_contact: adopt\n"


@dataclass
class Shop:
    """One project, its sandbox, and a folder for state."""

    root: Path
    url: str
    app: Sandbox
    project: str = "shop"
    seconds: int = 5

    def text(self, body: str = "", first: str = "adopt") -> str:
        reach = f"    url: {self.url}\n    key: {{secret: {VARIABLE}}}\n    project: {self.project}\n"
        inside = "".join(f"    {line}\n" for line in body.strip().splitlines())
        head = HEAD.replace("adopt", first)
        return f"{head}{reach}    door: {{seconds: {self.seconds}}}\n{inside}"

    def space(self, text: str) -> Workspace:
        setup = load_text(text, "setup.yaml", self.root)
        return Workspace(setup, LocalStore(self.root / "state"), {"viable": PROVIDER})

    def failed(self, text: str) -> str:
        return self.space(text).plan(Options()).homes[0].failed

    def rows(self, text: str, options: Options | None = None) -> dict[str, Action]:
        plan = self.space(text).plan(options or Options())
        assert not plan.homes[0].failed, plan.homes[0].failed
        return {a.address.path or "home": a for a in plan.homes[0].actions}

    def apply(self, text: str, options: Options | None = None) -> dict[str, tuple[str, str]]:
        """Outcome and reason by address, with everything agreed to."""
        space, options = self.space(text), options or Options()
        plan = space.plan(options)
        rows = frozenset(h.digests[a.address] for h in plan.homes for a in h.open)
        consent = Consent(yes=True, approved=rows, terminal=True, reviewed=True)
        events = list(apply(plan, replace(consent, restore=options.restore, allow=options.allow), space, options))
        reasons = {(e.address.path or "home") if e.address else e.home: e.reason for e in events if e.outcome}
        return {path: (outcome, reasons[path]) for path, outcome in outcomes(events).items()}

    def converge(self, text: str) -> None:
        done = self.apply(text)
        assert {outcome for outcome, _ in done.values()} <= {"applied"}, done
        assert self.rows(text) == {}

    def posts(self) -> list[tuple[str, object]]:
        return [(path, body) for method, path, body in self.app.seen if method == "POST"]

    def run(self, *words: str, token: str = TOKEN, code: int | None = None) -> str:
        """The command line's whole output, in this process; its setup is `setup.yaml` in `root`."""
        said = io.StringIO()
        before = dict(os.environ)
        os.environ.update({"HOME": str(self.root), "XDG_STATE_HOME": str(self.root / "xdg"), VARIABLE: token})
        try:
            with chdir(self.root), redirect_stdout(said), redirect_stderr(said):
                ended = run(list(words))
        finally:
            gc.enable()
            os.environ.clear()
            os.environ.update(before)
        assert code is None or ended == code, f"{words}: {ended}\n{said.getvalue()}"
        return said.getvalue()

    def kept(self) -> str:
        """Everything that lies below the folder, as one text."""
        return "".join(p.read_bytes().decode("utf-8", "replace") for p in self.root.rglob("*") if p.is_file())
