"""A loop in a test: a bare repository, an author's checkout of it, a home in memory, and a clock set by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.consent import Consent
from reconciler.gitops.loop import Loop, Terms
from reconciler.gitops.source import Source
from reconciler.workspace import Workspace
from reconciler_specs.address import Kind
from reconciler_specs.load import load
from reconciler_state.local import LocalStore
from reconciler_state.repository import Repository
from repositories import WHO
from world import HEAD, World, home_text

BRIEF = "        jobs:\n          brief: {schedule: {every: 30m}, prompt: PROMPT, deliver: local}\n"


def brief(prompt: str, head: str = HEAD) -> str:
    """A setup with one home and one job."""
    return head + home_text(BRIEF.replace("PROMPT", prompt))


class Following:
    """`told` are the events of every loop that was made here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.world = World(root)
        self.world.home()
        self.hub = Repository(root / "hub.git")
        Repository(root).run("init", "-q", "--bare", "-b", "main", str(self.hub.root))
        Repository(root).run("clone", "-q", str(self.hub.root), str(root / "work"))
        self.work = Repository(root / "work")
        self.work.run("config", "user.name", "ann")
        self.work.run("config", "user.email", "ann@example.org")
        self.told: list[Mapping[str, Any]] = []
        self.time = 1_800_000_000.0
        self.stopping = False
        self.consent = Consent(yes=True)
        self.untold: Sequence[str] = ()
        self.provider: Any = self.world.memory

    def push(self, text: str, subject: str = "change", *, force: bool = False, file: str = "setup.yaml") -> str:
        """The author writes a file, commits and pushes; the commit's id."""
        path = self.work.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("HOME", str(self.root)))
        self.work.run("add", "-A")
        self.work.run("commit", "-q", "--allow-empty", "-m", subject, env=WHO)
        self.work.run("push", "-q", *(["-f"] if force else []), "-u", "origin", "HEAD:main")
        return self.work.run("rev-parse", "HEAD")

    def source(self) -> Source:
        return Source.of(self.work.root / "setup.yaml", self.root / "state" / "gitops")

    def loop(self, **terms: Any) -> Loop:
        """A new process, as it were."""
        source = self.source()

        def open_(path: Path) -> Workspace:
            store = LocalStore(self.root / "state", self.world.store.files)
            return Workspace(load(path, stands=source.stands), store, {"hermes": self.provider})

        return Loop(
            source,
            open_,
            replace(Terms(), **terms),
            self.told.append,
            now=lambda: self.time,
            agreed=lambda *_: self.consent,
            notify=lambda *_: self.untold,
            stop=lambda: self.stopping,
            files=self.world.store.files,
        )

    def round(self, **terms: Any) -> int:
        """One round of a new loop."""
        return self.loop(**terms).round()

    def events(self, what: str) -> list[Mapping[str, Any]]:
        return [event for event in self.told if event["event"] == what]

    def jobs(self) -> Sequence[str]:
        """The prompts of the jobs in the home."""
        home = self.world.home()
        return [
            thing["prompt"]
            for (_, kind), things in home.things.items()
            if kind is Kind.JOB
            for thing in things.values()
        ]

    def head(self, branch: str) -> str:
        """Where a branch of the hub is, "" if there is none."""
        return self.hub.ask("rev-parse", "-q", "--verify", f"refs/heads/{branch}").out.strip()

    def meet(self, text: str) -> str:
        """Pushes a setup and applies it once with everything agreed to: the home is known from then on."""
        revision = self.push(text)
        self.world.setup(text)
        self.world.apply()
        return revision

    def edit(self, prompt: str) -> None:
        """Somebody rewrites the prompt of the home's one job."""
        [job] = self.world.home().jobs().values()
        job["prompt"] = prompt
