"""Profiles by Hermes's own functions, a copy in the trash before one is deleted, and a new home's first files."""

from __future__ import annotations

import importlib
import os
import shutil
import stat
from pathlib import Path
from typing import Any

from reconciler_shape import trash

from . import config as configs

_CACHES = frozenset({"audio_cache", "image_cache"})
_COPIED = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)  # a socket or a pipe cannot be copied


def perform(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Create, describe and delete, each by itself."""
    results = []
    for op in request["ops"]:
        code, words = "ok", ""
        try:
            globals()["_" + op["op"]](op, Path(request["home"]))
        except Exception as error:  # noqa: BLE001 - the boundary: Hermes's functions may raise anything
            code, words = "refused", str(error) or type(error).__name__
        results.append({"ref": op["ref"], "code": code, "id": op["name"], "words": words, "inert": ""})
    return results


def _hermes() -> Any:
    return importlib.import_module("hermes_cli.profiles")


def _folder(root: Path, name: str) -> Path:
    """Where the profile lies. Raises if Hermes would put it anywhere else than below this home."""
    folder = root if name == "default" else root / "profiles" / name
    theirs = Path(_hermes().get_profile_dir(name))
    if os.path.realpath(theirs) != os.path.realpath(folder):
        raise RuntimeError(f"Hermes keeps the profile {name} at {theirs}, not in this home")
    return folder


def _create(op: dict[str, Any], root: Path) -> None:
    hermes, folder = _hermes(), _folder(root, op["name"])
    hermes.create_profile(op["name"], no_alias=True)
    # create_profile goes on when the disk is full; an empty SOUL.md is what is left then.
    if not folder.is_dir() or not (folder / "SOUL.md").stat().st_size:
        raise RuntimeError(f"Hermes made the profile {op['name']} only in part (is the disk full?)")
    folder.chmod(0o700)
    # Without the stamp the next update of Hermes would take the config for a very old one and rewrite it.
    _stamp(folder)
    if op.get("description"):
        _describe(op, root)


def _describe(op: dict[str, Any], root: Path) -> None:
    folder = _folder(root, op["name"])
    _hermes().write_profile_meta(folder, description=op.get("description") or "", description_auto=False)


def _delete(op: dict[str, Any], root: Path) -> None:
    hermes, folder = _hermes(), _folder(root, op["name"])
    if op["name"] == "default":
        raise RuntimeError("the default profile is the home itself")
    trash.prune(root / trash.NAME)
    _copy(folder, trash.place_for(root / trash.NAME, op["name"]))
    hermes.delete_profile(op["name"], yes=True)
    if folder.exists():
        raise RuntimeError(f"Hermes could not remove {folder}; the copy in {trash.NAME} is complete")


def _copy(source: Path, target: Path) -> None:
    """Everything that cannot be made again, readable by the owner only; links stay links."""

    def skip(folder: str, names: list[str]) -> list[str]:
        here = Path(folder)
        odd = [n for n in names if stat.S_IFMT((here / n).lstat().st_mode) not in _COPIED]
        return odd + [n for n in names if n in _CACHES and here == source]

    shutil.copytree(source, target, symlinks=True, ignore=skip)
    trash.close(target)


def _stamp(folder: Path) -> None:
    """A config.yaml that says its version, if there is none."""
    path = folder / "config.yaml"
    if not path.exists():
        number = importlib.import_module("hermes_cli.config").DEFAULT_CONFIG["_config_version"]
        configs.write(path, f"_config_version: {number}\n".encode())


def provision(request: dict[str, Any]) -> list[dict[str, Any]]:
    """An empty home, 0700, with the stamp. Refused where something is already there (E48)."""
    root, op = Path(request["home"]), request["ops"][0]
    words = ""
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = min((path.name for path in root.iterdir()), default="")
        if there:
            words = f"{root} already holds {there}: adopt it instead"
        else:
            root.chmod(0o700)
            _stamp(root)
    except OSError as error:
        words = f"{root}: {error.strerror or error}"
    return [{"ref": op["ref"], "code": "refused" if words else "ok", "id": "", "words": words, "inert": ""}]
