"""Which OpenClaw home a path is, and its files read through a place: size limits, regular files, no links out of it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.errors import ProviderError
from reconciler.observe import Unknown
from reconciler.place import Place, Stat
from reconciler_shape import dotenv, places

DEFAULT = "default"
CONFIG = "openclaw.json"
LAST_GOOD = f"{CONFIG}.last-good"
DATABASE = "state/openclaw.sqlite"
CONFIG_LIMIT = 4 << 20  # bytes; OpenClaw itself takes includes of up to 2 MiB
TEXT_LIMIT = 1 << 20
SMALL_LIMIT = 64 << 10
MARKS = (CONFIG, DATABASE, LAST_GOOD)
"""What tells an OpenClaw home from another folder: one of these is there."""

_OLD = "clawdbot.json"
_READ_ONLY = ("OPENCLAW_CONFIG_READONLY", "OPENCLAW_NIX_MODE")


@dataclass(frozen=True, slots=True)
class Home:
    """One home: its state directory and its config, both with links resolved. What a gateway serves is compared with
    these two (`hello.snapshot`, a lock's `configPath`), never with a name."""

    place: Place
    root: str
    config: str

    def path(self, *parts: str) -> str:
        return posixpath.join(self.root, *parts)

    @property
    def database(self) -> str:
        return self.path(DATABASE)

    @property
    def store_key(self) -> str:
        """What OpenClaw keys a home's cron rows by, if it was started with this very path: the path of a file that it
        no longer writes. `statedb.Database.key` is what they are kept under."""
        return self.path("cron", "jobs.json")


def locate(place: Place, root: str) -> Home:
    return Home(place, root, posixpath.join(root, CONFIG))


def check(place: Place, root: str) -> bool:
    """Whether a home is there; an empty folder is none yet. Raises ProviderError for what is something else."""
    found = places.lstat(place, root)
    if isinstance(found, Unknown):
        raise ProviderError(found.reason)
    if found is None:
        return False
    if found.kind != "dir":
        raise ProviderError(f"{root} is a {found.kind}, not an OpenClaw home")
    try:
        names = place.list(root)
    except OSError as error:
        raise ProviderError(f"{root}: {error.strerror or error}") from error
    if not names:
        return False
    if not any(isinstance(places.lstat(place, posixpath.join(root, mark)), Stat) for mark in MARKS):
        if _OLD in names:
            raise ProviderError(f"{root} is a home of Clawdbot ({_OLD}): let OpenClaw's own `doctor` move it first")
        raise ProviderError(f"{root} is not an OpenClaw home: it holds {', '.join(names[:3])}, but no {CONFIG}")
    return True


def text(place: Place, path: str, limit: int) -> bytes | Unknown | None:
    """A file's bytes, None if it is not there, Unknown if it cannot be read or is no regular file."""
    try:
        return place.read(path, limit)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        found = places.lstat(place, path)
        if isinstance(found, Stat) and found.kind == "link":
            return Unknown(f"{path}: a link to {found.target}; links are not followed here")
        return Unknown(f"{path}: {error.strerror or error}")


@dataclass(frozen=True, slots=True)
class Env:
    """The home's `.env`: its values, those that must never be seen, and what they say about writing."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    flags: frozenset[str] = frozenset()
    unknown: Unknown | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.values)


def env(home: Home) -> Env:
    """`.env` of the state directory, which OpenClaw reads beside its environment."""
    data = text(home.place, home.path(".env"), TEXT_LIMIT)
    if isinstance(data, Unknown):
        return Env(unknown=data)
    lines = (data or b"").decode("utf-8", "replace").splitlines()
    entries = [entry for line in lines if (entry := dotenv.entry(line)) and entry[1]]
    return Env(
        dict(entries),
        tuple(value for name, value in entries if dotenv.is_secret(name, value)),
        flags(f"{name}={value}" for name, value in entries),
    )


def flags(environ: Iterable[str]) -> frozenset[str]:
    """Of `NAME=value` lines, the switches by which OpenClaw's own writers refuse to write its config."""
    lines = set(environ)
    return frozenset(name for name in _READ_ONLY if f"{name}=1" in lines)


def managed(home: Home, switches: frozenset[str]) -> str:
    """Why OpenClaw's config may not be written here, "" if it may: another system manages it, or it is a link."""
    if switches:
        name = sorted(switches)[0]
        return (
            f"{home.config} is managed by another system ({name}=1), and is not written here: change it there, or take "
            "the switch away"
        )
    found = places.lstat(home.place, home.config)
    if isinstance(found, Stat) and found.kind == "link":
        return (
            f"{home.config} is a link to {found.target}: OpenClaw does not write through it; put the file itself there"
        )
    return ""


def foreign(home: Home) -> str:
    """Why the home is not ours to write, "" if it is (L17)."""
    found, uid = places.lstat(home.place, home.root), home.place.uid()
    if isinstance(found, Stat) and found.uid != uid:
        return f"{home.root} belongs to uid {found.uid}, and we are uid {uid}"
    return ""


_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-(\d+))?")


def version(text: str | None) -> tuple[int, ...]:
    """`2026.7.1-2` as numbers that compare, () for what is no version."""
    match = _VERSION.match(text or "")
    return tuple(int(part or 0) for part in match.groups()) if match else ()
