"""Profiles: the home's root is `default`, each folder under `profiles/` is another one."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Sequence

from reconciler.observe import Observed, Unknown
from reconciler.place import Place
from reconciler.provider import Behind
from reconciler_shape import behind as left
from reconciler_shape import configfile, places
from reconciler_shape.hiding import Hider
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_OWN = frozenset({"auth.lock", "gateway.pid", "gateway_state.json", ".managed"})
RESERVED = frozenset({"hermes", "test", "tmp", "root", "sudo"})


def names(place: Place, root: str) -> list[str]:
    """`default`, and the folders under `profiles/` that Hermes counts as profiles."""
    below = posixpath.join(root, "profiles")
    found = [home.DEFAULT]
    # Hermes follows a link to a folder here; its files are then elsewhere, and we say so by not reading them.
    for name in places.folders(place, below):
        if _NAME.fullmatch(name) and name != home.DEFAULT:
            found.append(name)
    return found


def refusal(name: str) -> str:
    """Why Hermes would not take `name`, "" if it would."""
    if not _NAME.fullmatch(name):
        return f"{name}: Hermes takes small letters, digits, - and _ (at most 64)"
    return f"{name} is a name that Hermes keeps for itself" if name in RESERVED else ""


def observed(place: Place, root: str, name: str, hider: Hider, held: Sequence[str] = ()) -> Observed:
    """The profile with its description, which stands in `profile.yaml`; `held` keeps it from being deleted."""
    path = posixpath.join(home.profile_dir(root, name), "profile.yaml")
    data = home.text(place, path, home.SMALL_LIMIT)
    fields: dict[str, Json | Unknown] = {}
    about: dict[str, Json] = {"holds": list(held)} if held else {}
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
        fingerprint=digest((data or b"").hex() if not isinstance(data, Unknown) else "", hider.key),
        about=about,
    )


_PLAIN = frozenset({"config.yaml", "profile.yaml", ".env", "cron", "logs", "auth.lock", "audio_cache", "image_cache"})


def holds(place: Place, folder: str, filled: int, soul: str | None) -> list[str]:
    """What a profile's folder has beyond a new one's: relative paths, and `.env` if it says anything.

    `soul` is the SOUL.md that Hermes puts into a new profile, None if that cannot be told.
    """
    found = [f".env ({filled} names)"] if filled else []
    for name in places.names(place, folder):
        stat = places.lstat(place, posixpath.join(folder, name))
        if name in _PLAIN or stat is None:
            continue
        if isinstance(stat, Unknown) or stat.kind != "dir":
            data = home.text(place, posixpath.join(folder, name), home.TEXT_LIMIT) if name == "SOUL.md" else None
            if not (isinstance(data, bytes) and soul is not None and data.decode(errors="replace") == soul):
                found.append(name)
        else:
            found += [path for path in places.tree(place, folder, name, 50) if not path.endswith((".lock", ".pyc"))]
    return found


def first_soul(place: Place, site: str) -> str | None:
    """The SOUL.md of a new profile, from Hermes's own source."""
    data = home.text(place, posixpath.join(site, "hermes_cli", "default_soul.py"), home.SMALL_LIMIT) if site else None
    if not isinstance(data, bytes):
        return None
    try:
        for node in ast.parse(data).body:
            names = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(n, ast.Name) and n.id == "DEFAULT_SOUL_MD" for n in names):
                return str(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    except (SyntaxError, ValueError):
        return None
    return None


def trash(root: str, place: Place) -> list[str]:
    """What lies in the home's trash, a line each (L5: listed by `doctor`, pruned after 14 days)."""
    folder = posixpath.join(root, ".reconciler-trash")
    return [f"trash: a copy from before a delete, {name} (kept for 14 days)" for name in places.visible(place, folder)]


def behind(place: Place, root: str) -> list[Behind]:
    """What a copy leaves in the home."""
    folders = {home.profile_dir("", name): home.profile_dir(root, name) for name in names(place, root)}
    return list(left.behind(place, folders, _OWN))
