"""Several runners of one setup, each with a state folder of its own, on one state branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reconciler.event import Event
from reconciler.workspace import Workspace
from reconciler_specs.load import load_text
from reconciler_state.branch import Branch
from reconciler_state.record import HomeState
from reconciler_state.repository import Repository
from reconciler_state.shared import SharedStore
from world import World


def bare(folder: Path) -> Repository:
    """An empty bare repository."""
    folder.mkdir(parents=True)
    repository = Repository(folder)
    repository.run("init", "-q", "--bare", "-b", "main", ".")
    return repository


class Runner(World):
    """A World whose state is shared: `name` is the runner's own folder; homes and setup are those of `of`, if given."""

    def __init__(self, root: Path, name: str, of: Runner | None = None, texts: bool = True) -> None:
        super().__init__(root)
        self.name = name
        self.texts = texts
        self.remote = root / "state.git"
        self.pauses = 0
        self.meanwhile: Callable[[], None] = lambda: None
        if of is not None:
            self.memory, self.provider, self.text = of.memory, of.provider, of.text
        elif not self.remote.exists():
            bare(self.remote)

    @property
    def folder(self) -> Path:
        return self.root / self.name / "copy"

    def shared(self) -> SharedStore:
        """A store as a new process has it."""
        branch = Branch(self.folder / "objects.git", str(self.remote), "reconciler-state", self.root)
        return SharedStore(
            self.root / self.name,
            branch,
            self.folder,
            texts=self.texts,
            pause=self._paused,
        )

    def _paused(self, seconds: float) -> None:
        self.pauses += 1
        self.meanwhile()

    def space(self) -> Workspace:
        setup = load_text(self.text, "setup.yaml", self.root)
        self.store = self.shared()
        return Workspace(setup, self.store, {"hermes": self.provider})

    def state(self) -> HomeState:
        """The state of the one home, as this runner sees it."""
        store = self.shared()
        [physical] = store.list()
        state = store.read(physical)
        assert state is not None
        return state

    def subjects(self) -> list[str]:
        """The commits of the branch, the last one first."""
        return Repository(self.remote).run("log", "--format=%s", "reconciler-state").splitlines()

    def show(self, name: str) -> str:
        """A file on the branch, by the start of its name."""
        repository = Repository(self.remote)
        names = repository.run("ls-tree", "-r", "--name-only", "reconciler-state").splitlines()
        [found] = [n for n in names if n.startswith(name)]
        return repository.run("show", f"reconciler-state:{found}")


def two_of(one: Runner, name: str = "two") -> Runner:
    return Runner(one.root, name, one)


def ended(events: list[Event]) -> Event:
    return next(e for e in reversed(events) if e.what == "home-end")


def jobs(one: Runner) -> list[str]:
    return sorted(job["name"] for job in one.home().jobs().values())
