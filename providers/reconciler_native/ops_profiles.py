"""The verbs on profiles: folders under `profiles/`, moved to the trash and back, never unlinked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

from reconciler_shape import worker as shape
from reconciler_shape.plain import digest

from . import worker
from .context import Args, Context, Result, Verb, closed, maybe_text, text, verb
from .errors import LoadFailed, Refused
from .folder import DEFAULT, PROFILE, RESERVED, TRASH, Profile
from .jobsfile import JobsFile

STAMP = 33
_WORKER = ("harness", "model", "preset", "cwd", "env", "permission")


def view(profile: Profile) -> Result:
    """The profile as the orchestrator's door shows it, with its description."""
    found = {
        "name": profile.name,
        "dir": str(profile.folder),
        "worker": profile.worker,
        "jobs": len(profile.jobs.records()),
        "bindings": 0,
    }
    description = profile.meta.get(("description",))
    return {**found, **({"description": description} if description else {})}


def name_refusal(name: str) -> str:
    """Why a profile cannot be called so, "" if it can."""
    if name == DEFAULT:
        return "the root folder IS the `default` profile; it exists as soon as the home does"
    if not PROFILE.fullmatch(name):
        return (
            f"profile name {json.dumps(name)} is not one here: small letters, digits, '_' and '-', beginning with a "
            "letter or digit, at most 64"
        )
    return f"{name} is a name that Hermes keeps for itself" if name in RESERVED else ""


def _create(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "profiles.create")
    why = name_refusal(name)
    if why:
        raise Refused(why)
    folder = ctx.folder.root / "profiles" / name
    # An empty folder is what a create that was cut off has left.
    if folder.is_symlink() or (folder.exists() and any(folder.iterdir())):
        raise Refused(f"profiles_create: profile {name} already exists")
    spec = _worker(args.get("worker"))
    made = Profile(name, folder, _Nothing())
    made.config.set(("_config_version",), STAMP)
    if spec is not None:
        made.config.set(("worker",), spec)
        _checked(made)
    _describe(made, maybe_text(args, "description"))
    ctx.folder.profiles[name] = made
    return {"ran": f"created profile {name} at {folder}", "name": name, "profile": view(made)}


class _Nothing:
    """A source for a profile that is not there yet."""

    def read(self, path: Path) -> bytes | None:
        return None

    def folders(self, path: Path) -> list[str]:
        return []

    def jobs(self, path: Path) -> JobsFile:
        return JobsFile(None, str(path))


def _worker(raw: Any) -> Mapping[str, Any] | None:
    if raw is None:
        return None
    if isinstance(raw, str):
        raw = {"harness": raw}
    found = closed(raw, _WORKER, "worker")
    if not isinstance(found.get("harness"), str) or not found["harness"].strip():
        raise Refused("worker.harness is required")
    return {key: value for key, value in found.items() if value is not None}


def _checked(profile: Profile) -> None:
    try:
        worker.check(profile.config.raw, "config.yaml")
    except LoadFailed as error:
        raise Refused(str(error)) from error


def _describe(profile: Profile, description: str | None) -> None:
    if description:
        profile.meta.set(("description",), description)
        if profile.meta.get(("description_auto",)):
            profile.meta.set(("description_auto",), False)
    else:
        profile.meta.unset(("description",))


def _update(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "profiles.update")
    profile = _known(ctx, name, "profiles_update")
    given = sorted(set(args) - {"name"})
    if not given:
        raise Refused("profiles.update changes nothing; name at least one of description, worker")
    _still(ctx, profile)
    if "worker" in args:
        spec = _worker(args["worker"])
        old = profile.config.raw.get("worker")
        if spec is None:
            profile.config.unset(("worker",))
        else:
            for key in _WORKER:
                if key in spec:
                    # What a caller was only shown hidden stays as it stands.
                    now = old.get(key) if isinstance(old, dict) else None
                    wanted = shape.kept(spec[key], now)
                    if wanted != now:
                        profile.config.set(("worker", key), wanted)
                else:
                    profile.config.unset(("worker", key))
        _checked(profile)
    if "description" in args:
        _describe(profile, maybe_text(args, "description"))
    return {"ran": f"updated profile {name} ({', '.join(given)})", "name": name, "profile": view(profile)}


def _known(ctx: Context, name: str, op: str) -> Profile:
    profile = ctx.folder.profiles.get(name)
    if profile is None:
        raise Refused(f"{op}: no profile {name}", stale=ctx.expect is not None)
    return profile


def _delete(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "profiles.delete")
    if name == DEFAULT:
        raise Refused("profiles_delete: the root folder IS the default profile; it is never removed")
    profile = _known(ctx, name, "profiles_delete")
    if profile is ctx.profile:
        raise Refused(f"profiles_delete: {name} is the profile that the verb acts in; act in another one")
    _still(ctx, profile)
    trash = ctx.folder.root / TRASH
    stem = f"{name}-{ctx.now.astimezone(UTC).strftime('%Y%m%d%H%M%S')}"
    target, count = trash / stem, 2
    while target.exists():
        target, count = trash / f"{stem}-{count}", count + 1
    ctx.home.disk.move(profile.folder, target)
    del ctx.folder.profiles[name]
    return {
        "ran": f"removed profile {name}; its folder was moved into {TRASH}/",
        "name": name,
        "profile": None,
        "deleted": True,
        "trash": target.name,
    }


def _restore(ctx: Context, args: Args) -> Result:
    name = text(args, "name", "profiles.restore")
    why = name_refusal(name)
    if why:
        raise Refused(why)
    folder = ctx.folder.root / "profiles" / name
    if name in ctx.folder.profiles or folder.exists():
        raise Refused(f"profiles_restore: profile {name} is there; move it away first")
    source = maybe_text(args, "from") or next(iter(in_trash(ctx.folder.root, name)), "")
    if not source or source not in in_trash(ctx.folder.root, name):
        known = ", ".join(in_trash(ctx.folder.root, "")) or "it is empty"
        raise Refused(f"profiles_restore: {TRASH}/ holds no {source or name} (it has: {known})")
    ctx.home.disk.move(ctx.folder.root / TRASH / source, folder)
    made = ctx.folder.add(name)
    return {"ran": f"restored profile {name} from {TRASH}/{source}", "name": name, "profile": view(made)}


def in_trash(root: Path, name: str) -> list[str]:
    """The folders in the trash that were the profile `name` (any, for ""), the newest first."""
    trash = root / TRASH
    if not trash.is_dir():
        return []
    found = []
    for path in trash.iterdir():
        was, _, stamp = path.name.rpartition("-")
        if len(stamp) < 14:  # `<name>-<stamp>-2`
            was, _, stamp = was.rpartition("-")
        if path.is_dir() and len(stamp) == 14 and stamp.isdigit() and name in ("", was):
            found.append((stamp, path.stat().st_ctime_ns, path.name))
    return [item[2] for item in sorted(found, reverse=True)]


def _list(ctx: Context, args: Args) -> Result:
    found = [view(profile) for _, profile in sorted(ctx.folder.profiles.items())]
    return {
        "ran": f"{len(found)} profiles",
        "profiles": found,
        "trash": in_trash(ctx.folder.root, ""),
    }


def fingerprint(profile: Profile | None, key: bytes) -> str:
    """The profile's own digest: what stands in its `profile.yaml`, and its worker; None for one that is new. Raises
    LoadFailed."""
    return digest(_seen(profile) if profile is not None else "", key)


def _seen(profile: Profile, block: Any = None) -> Any:
    text = (profile.meta.original or b"").hex()
    block = profile.config.raw.get("worker") if block is None else block
    return text if block is None else [text, block]


def _still(ctx: Context, profile: Profile) -> None:
    """A secret that was pasted into the worker has moved to `.env` since the caller looked."""
    before = ctx.folder.seen(profile.name, ("worker",))
    ctx.still(f"profile {profile.name}", _seen(profile), _seen(profile, before))


VERBS: dict[str, Verb] = {
    "profiles.create": verb(_create, "name", "worker", "description"),
    "profiles.update": verb(_update, "name", "worker", "description"),
    "profiles.delete": verb(_delete, "name"),
    "profiles.restore": verb(_restore, "name", "from"),
    "profiles.list": verb(_list, reads=True),
}
