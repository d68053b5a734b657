"""The home's folder as a value: Hermes-shaped stores per profile, read when asked for, saved where they changed."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from reconciler_shape.marks import NATIVE

from . import pasted, worker
from .disk import LIMIT, Disk
from .dotenv import EnvFile
from .errors import LoadFailed, WriteFailed
from .jobsfile import JobsFile
from .kitfile import KitFile
from .mapfile import MapFile
from .yamltext import YamlFile

DEFAULT = "default"
PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""The form of a profile's name: Hermes's, so that the folder can be opened with it."""
RESERVED = frozenset({"hermes", "test", "tmp", "root", "sudo"})
TRASH = "profiles/.trash"
KITS = "kits"
KIT = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
"""The form of a planning kit's name, as the setup's."""
MARK = NATIVE
"""The file that makes a folder a native home, and on which every writer takes its lock. A home of Hermes has none: it
looks the same, and is Hermes's to write."""

_EDITED = ("env", "config", "meta")

Stored = JobsFile | MapFile | EnvFile | YamlFile


class Source(Protocol):
    """Where a folder's bytes come from."""

    def read(self, path: Path) -> bytes | None:
        """A regular file's bytes, None iff nothing is there. Raises LoadFailed."""
        ...

    def folders(self, path: Path) -> list[str]:
        """The names of the real folders in a folder, sorted; none if there is no such folder."""
        ...

    def jobs(self, path: Path) -> JobsFile:
        """The job store at a path. Raises LoadFailed."""
        ...


class DiskSource:
    """The machine's own files."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def read(self, path: Path) -> bytes | None:
        return self._disk.read(path, LIMIT)

    def folders(self, path: Path) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LoadFailed(str(path), error.strerror or str(error)) from error

    def jobs(self, path: Path) -> JobsFile:
        return JobsFile(self.read(path), str(path))


class KeptSource(DiskSource):
    """The same for a daemon: a job store that nobody has touched since is not read and parsed again.

    A store is known by its file's inode, size and times. What is written is compared with the file's bytes anyway.
    """

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk)
        self._kept: dict[Path, tuple[tuple[int, ...], JobsFile]] = {}

    def jobs(self, path: Path) -> JobsFile:
        # Looked at before it is read: a file that changes in between is read again the next time.
        now = _signature(path)
        kept = self._kept.get(path)
        if kept is not None and now is not None and kept[0] == now:
            return kept[1]
        found = super().jobs(path)
        if now is not None:
            self._kept[path] = (now, found)
        return found

    def wrote(self, path: Path) -> None:
        """The kept store is the file's new content."""
        now = _signature(path)
        if path in self._kept and now is not None:
            self._kept[path] = (now, self._kept[path][1])

    def forget(self) -> None:
        """After a change that was not saved."""
        self._kept.clear()


def _signature(path: Path) -> tuple[int, ...] | None:
    try:
        info = path.stat(follow_symlinks=False)
    except OSError:
        return None  # it is read in the usual way, which says what is wrong
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


class Profile:
    """One profile's stores; each is read when it is first asked for, and every one raises LoadFailed."""

    def __init__(self, name: str, folder: Path, source: Source) -> None:
        self.name = name
        self.folder = folder
        self._source = source
        self._pairings: dict[str, MapFile] = {}
        self._kits: dict[str, KitFile] = {}

    @cached_property
    def env(self) -> EnvFile:
        path = self.folder / ".env"
        return EnvFile(self._source.read(path), str(path))

    @cached_property
    def config(self) -> YamlFile:
        path = self.folder / "config.yaml"
        return YamlFile(self._source.read(path), str(path))

    @cached_property
    def meta(self) -> YamlFile:
        path = self.folder / "profile.yaml"
        return YamlFile(self._source.read(path), str(path))

    @cached_property
    def jobs(self) -> JobsFile:
        return self._source.jobs(self.folder / "cron" / "jobs.json")

    @cached_property
    def webhooks(self) -> MapFile:
        path = self.folder / "webhook_subscriptions.json"
        return MapFile(self._source.read(path), str(path))

    def pairing(self, name: str) -> MapFile:
        """`<platform>-approved`, `<platform>-pending` or `_rate_limits` of Hermes's pairing store."""
        if name not in self._pairings:
            path = self.pairing_folder / f"{name}.json"
            self._pairings[name] = MapFile(self._source.read(path), str(path))
        return self._pairings[name]

    @cached_property
    def pairing_folder(self) -> Path:
        """`platforms/pairing`, unless an older non-empty `pairing` is there, as Hermes chooses."""
        older = self.folder / "pairing"
        return older if older.is_dir() and any(older.iterdir()) else self.folder / "platforms" / "pairing"

    def platforms(self, kind: str) -> list[str]:
        """The platforms with a pairing file of this kind (`approved`, `pending`)."""
        if not self.pairing_folder.is_dir():
            return []
        names = (path.name for path in self.pairing_folder.glob(f"*-{kind}.json"))
        return sorted(name.removesuffix(f"-{kind}.json") for name in names if not name.startswith("."))

    def kit(self, name: str) -> KitFile:
        """A planning kit's file; it need not be there."""
        if name not in self._kits:
            path = self.folder / KITS / f"{name}.yaml"
            self._kits[name] = KitFile(self._source.read(path), str(path))
        return self._kits[name]

    def kits(self) -> list[str]:
        """The names of the planning kits, those of this process's unsaved verbs too."""
        folder = self.folder / KITS
        found = {path.stem for path in folder.glob("*.yaml")} if folder.is_dir() and not folder.is_symlink() else set()
        return sorted(name for name in found | set(self._kits) if KIT.fullmatch(name) and self.kit(name).there)

    @property
    def worker(self) -> dict[str, object] | None:
        """The checked `worker:` block."""
        return worker.check(self.config.raw, self.config.path)

    @property
    def zone(self) -> str:
        """The profile's `timezone` setting, "" if it says nothing."""
        zone = self.config.get(("timezone",))
        return zone.strip() if isinstance(zone, str) else ""

    def snapshot(self) -> dict[str, Any]:
        """What `restore` takes the edited stores back to, for a verb that is refused half-way."""
        edited = {name: self.__dict__[name].snapshot() for name in _EDITED if name in self.__dict__}
        return {**edited, KITS: {name: kit.snapshot() for name, kit in self._kits.items()}}

    def restore(self, snapshot: dict[str, Any]) -> None:
        for name in _EDITED:
            if name in snapshot:
                self.__dict__[name].restore(snapshot[name])
            else:
                self.__dict__.pop(name, None)
        self._kits = {name: kit for name, kit in self._kits.items() if name in snapshot[KITS]}
        for name, kit in self._kits.items():
            kit.restore(snapshot[KITS][name])

    def loaded(self) -> Iterator[Stored]:
        """The stores that were asked for, in the order in which they are saved: a reference never before its value."""
        for name in ("env", "config", "meta", "webhooks"):
            if name in self.__dict__:
                yield self.__dict__[name]
        yield from self._kits.values()
        # `approved` before `pending`: a code is not used up before its grant is on the disk.
        yield from (self._pairings[name] for name in sorted(self._pairings))
        if "jobs" in self.__dict__:
            yield self.__dict__["jobs"]


class Folder:
    """A home's profiles. `load` is a `Folder`, `save` writes what changed: `save(load(x))` is `x`, byte for byte."""

    def __init__(self, root: Path, source: Source) -> None:
        """Raises LoadFailed when the folder cannot be looked at. Reads no store yet."""
        self.root = root
        self._source = source
        self.moved: list[str] = []
        self._before: dict[str, dict[str, Any]] = {}
        self.profiles = {DEFAULT: Profile(DEFAULT, root, source)}
        for name in source.folders(root / "profiles"):
            if PROFILE.fullmatch(name) and name != DEFAULT:
                self.profiles[name] = Profile(name, root / "profiles" / name, source)

    def check(self) -> None:
        """Raises LoadFailed iff a file that every writer goes through is not in proper form, or a profile's own block.

        Jobs are looked at when a verb is about them: a broken store of one profile holds up nobody else.
        """
        for profile in self.profiles.values():
            worker.check(profile.config.raw, profile.config.path)
            _ = profile.env, profile.webhooks

    def take_in_secrets(self) -> None:
        """Moves pasted secrets into `.env`; `moved` says where they stood. Raises LoadFailed, Refused."""
        for profile in self.profiles.values():
            before = profile.config.raw
            moved = pasted.move(profile.config, profile.webhooks, profile.env)
            if moved:
                self._before[profile.name] = before
            self.moved += moved

    def seen(self, profile: str, path: Sequence[str]) -> Any:
        """What stood at a path of config.yaml before pasted secrets were taken in, as a plan may have seen it."""
        here: Any = self._before.get(profile)
        for segment in path:
            here = here.get(segment) if isinstance(here, dict) else None
        return here

    def add(self, name: str) -> Profile:
        self.profiles[name] = Profile(name, self.root / "profiles" / name, self._source)
        return self.profiles[name]

    def save(self, disk: Disk, now: str) -> None:
        """Writes the stores that changed, each whole. Raises WriteFailed; what is not written is as it was.

        A file that somebody changed since it was read is not written over.
        """
        for profile in self.profiles.values():
            for store in profile.loaded():
                data = store.encode(now)
                if data == (store.original or b""):
                    continue
                path = Path(store.path)
                if disk.read(path) != store.original:
                    raise WriteFailed(f"{path}: somebody changed it while it was being worked on; nothing was written")
                if isinstance(store, KitFile) and not store.there:
                    disk.remove(path)
                    store.original = None
                    continue
                try:
                    disk.write(path, data)
                except WriteFailed:
                    if path.parent == profile.folder != self.root:
                        with contextlib.suppress(OSError):
                            profile.folder.rmdir()  # a new profile's, if nothing is in it yet
                    raise
                store.settle(data)
                if isinstance(self._source, KeptSource):
                    self._source.wrote(path)
