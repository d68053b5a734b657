"""Setup and Home: what was declared, checked and resolved; the engine asks them for Resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .address import Address
from .errors import Where
from .notify import NotifyTarget
from .policy import DEFAULTS, Policy
from .resource import Resource
from .shape import Json
from .state import StatePlace
from .template import Parameter

HARNESSES = ("native", "hermes", "openclaw", "orchestrator", "viable")


@dataclass(frozen=True, slots=True)
class Home:
    """One declared home.

    `path` is as written, but a relative one on this machine is made absolute from the file that says it. `place`
    is the place's name, "" for this machine. `at` is the command prefix that leads there, None if there is none;
    `host` names another machine whose runner it is for, "" if it is for us. `harness_version` is a range as
    text, `timezone` an IANA zone, "" if not said. `door` is for the provider to check; where the home is a project on a
    platform, `path` is `URL/PROJECT`, and `door` has `url`, `key`, `project` and `target` too. `policy` holds only what
    the home itself says: see `Setup.policy_of`. `profiles` are the declared profiles' names,
    `models` the models by profile and by the author's name for them.
    """

    id: str
    harness: str
    path: str
    place: str = ""
    at: tuple[str, ...] | None = None
    host: str = ""
    harness_version: str = ""
    timezone: str = ""
    first_contact: str = "ask"
    shared: bool = False
    restart: str = "ask"
    door: Mapping[str, Json] = field(default_factory=dict)
    extends: tuple[str, ...] = ()
    policy: Policy = field(default_factory=Policy)
    profiles: tuple[str, ...] = ()
    models: Mapping[str, Mapping[str, Json]] = field(default_factory=dict, repr=False)
    resources: Mapping[Address, Resource] = field(default_factory=dict, repr=False)
    where: Where = field(default=Where(""), compare=False)


@dataclass(frozen=True, slots=True)
class Setup:
    """A whole setup. `root` is the setup file, `files` all files that were read for it, `root` first. `stands` is the
    folder that relative paths on this machine are from: that of `root`, or that of what `root` is a copy of."""

    name: str
    homes: Mapping[str, Home]
    root: Path
    formerly: tuple[str, ...] = ()
    moved: tuple[tuple[Address, Address], ...] = ()
    released: tuple[Address, ...] = ()
    policy: Policy = field(default_factory=Policy)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    notify: Mapping[str, NotifyTarget] = field(default_factory=dict)
    state: StatePlace = field(default_factory=StatePlace)
    files: tuple[Path, ...] = ()
    stands: Path = Path()

    def policy_of(self, home_id: str) -> Policy:
        """The home's policy over the setup's over the defaults. KeyError if there is no such home."""
        return self.homes[home_id].policy.over(self.policy).over(DEFAULTS)

    def desired(self, home_id: str) -> dict[Address, Resource]:
        """What the home is to hold, profile by profile: profile, files, settings, inference, jobs. KeyError."""
        return dict(self.homes[home_id].resources)
