"""A Hermes home's files, read through a place: size limits, regular files, and reasons that name the file."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.observe import Store, Unknown
from reconciler.place import Place, Stat
from reconciler_shape import configfile, places
from reconciler_shape.hiding import Hider
from reconciler_specs.shape import Json

from . import dotenv

JOBS_LIMIT = 64 << 20  # bytes; 5,000 jobs are 6.5 MB
ENV_LIMIT = 1 << 20
TEXT_LIMIT = 1 << 20
SMALL_LIMIT = 64 << 10
DEFAULT = "default"

MARKS = (
    "config.yaml",
    "SOUL.md",
    "cron",
    "profiles",
    "profile.yaml",
    "skills",
    "state.db",
    "memories",
    ".managed",
    "gateway_state.json",
)
"""What tells a Hermes home from another folder: one of these is there."""


@dataclass(frozen=True, slots=True)
class Config:
    """A profile's config.yaml: `raw` as Hermes reads it, or `unknown` with the reason."""

    path: str
    raw: Mapping[str, Json] = field(default_factory=dict)
    store: Store = Store.MISSING
    unknown: Unknown | None = None
    note: str = ""


def profile_dir(root: str, profile: str) -> str:
    return root if profile in ("", DEFAULT) else posixpath.join(root, "profiles", profile)


def text(place: Place, path: str, limit: int) -> bytes | Unknown | None:
    """A file's bytes, None if it is not there, Unknown if it cannot be read."""
    try:
        return place.read(path, limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        found = places.lstat(place, path)
        if isinstance(found, Stat) and found.kind == "link":
            return Unknown(f"{path}: a link to {found.target}; links are not followed here")
        return Unknown(f"{path}: {error.strerror or error}")


def config(place: Place, folder: str) -> Config:
    """config.yaml of a profile. A link to a regular file is followed, as Hermes follows it, and named."""
    path = posixpath.join(folder, "config.yaml")
    note, real = "", path
    found = places.lstat(place, path)
    if isinstance(found, Unknown):
        return Config(path, unknown=found, store=Store.IMPROPER)
    if found is None:
        return Config(path)
    if found.kind == "link":
        real = found.target
        note = f"{path} is a link to {real}: it is written there, and the link stays"
    data = text(place, real, configfile.LIMIT)
    if data is None:
        return Config(path, unknown=Unknown(f"{path}: a link to {real}, which is not there"), store=Store.IMPROPER)
    if isinstance(data, Unknown):
        return Config(path, unknown=data, store=Store.IMPROPER, note=note)
    try:
        raw = configfile.parse(data, path)
    except configfile.NotReadable as error:
        return Config(path, unknown=Unknown(str(error)), store=Store.IMPROPER, note=note)
    return Config(path, raw, Store.PROPER if raw else Store.EMPTY, note=note)


def env(place: Place, folder: str) -> dotenv.DotEnv | Unknown:
    """The profile's `.env`, followed through a link, as Hermes follows it."""
    path = posixpath.join(folder, ".env")
    found = places.lstat(place, path)
    if isinstance(found, Unknown):
        return found
    if found is None:
        return dotenv.DotEnv()
    data = text(place, found.target if found.kind == "link" else path, ENV_LIMIT)
    if isinstance(data, Unknown):
        return data
    return dotenv.parse(data or b"")


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile as it was read: what the modules of the kinds make their things from."""

    name: str
    folder: str
    config: Config
    env: dotenv.DotEnv
    zone: str
    hider: Hider
    notes: tuple[str, ...] = ()
