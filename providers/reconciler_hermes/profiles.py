"""Profiles: the home's root is `default`, each folder under `profiles/` is another one."""

from __future__ import annotations

import posixpath
import re

from reconciler.observe import Observed, Unknown
from reconciler.place import Place, Stat
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import configfile, home
from .hiding import Hider
from .worker import record as records

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
RESERVED = frozenset({"hermes", "test", "tmp", "root", "sudo"})


def names(place: Place, root: str) -> list[str]:
    """`default`, and the folders under `profiles/` that Hermes counts as profiles."""
    below = posixpath.join(root, "profiles")
    found = [home.DEFAULT]
    for name in home.names(place, below):
        stat = home.lstat(place, posixpath.join(below, name))
        if not _NAME.fullmatch(name) or name == home.DEFAULT:
            continue
        # Hermes follows a link to a folder here; its files are then elsewhere, and we say so by not reading them.
        if isinstance(stat, Stat) and stat.kind == "dir":
            found.append(name)
    return found


def refusal(name: str) -> str:
    """Why Hermes would not take `name`, "" if it would."""
    if not _NAME.fullmatch(name):
        return f"{name}: Hermes takes small letters, digits, - and _ (at most 64)"
    return f"{name} is a name that Hermes keeps for itself" if name in RESERVED else ""


def observed(place: Place, root: str, name: str, hider: Hider) -> Observed:
    """The profile with its description, which stands in `profile.yaml`."""
    path = posixpath.join(home.profile_dir(root, name), "profile.yaml")
    data = home.text(place, path, home.SMALL_LIMIT)
    fields: dict[str, Json | Unknown] = {}
    about: dict[str, Json] = {}
    if isinstance(data, Unknown):
        fields["description"] = data
    elif data is not None:
        try:
            raw = configfile.parse(data, path)
        except configfile.NotReadable as error:
            fields["description"] = Unknown(str(error))
        else:
            text = str(raw.get("description") or "").strip()
            if text:
                fields["description"] = hider.value(text)
            if raw.get("description_auto"):
                about["changed_by"] = "described by Hermes itself"
    return Observed(
        Kind.PROFILE,
        "",
        name,
        fields,
        name=name,
        fingerprint=records.digest((data or b"").hex() if not isinstance(data, Unknown) else "", hider.key),
        about=about,
    )


def trash(root: str, place: Place) -> list[str]:
    """What lies in the home's trash, a line each (L5: listed by `doctor`, pruned after 14 days)."""
    folder = posixpath.join(root, ".reconciler-trash")
    return [f"trash: a copy from before a delete, {name} (kept for 14 days)" for name in home.names(place, folder)]
