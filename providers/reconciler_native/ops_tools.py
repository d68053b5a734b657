"""The verbs on MCP servers, toolsets, plugins and skills: each by its id, only what is named of it changes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from reconciler.action import CLEAR
from reconciler.observe import Unknown
from reconciler_shape import dotted, parts, skillfolder, trash
from reconciler_shape.edits import CannotWrite, Edits
from reconciler_shape.paths import outside
from reconciler_shape.shaped import Shaped, gone, lacking
from reconciler_shape.skills import DISABLED
from reconciler_specs.address import Kind

from .context import Args, Context, Result, Verb, closed, flag, text, verb
from .errors import Refused
from .ops_reach import refuse_pasted
from .tools import SHAPED, SKILLS


def _set(shaped: Shaped, ctx: Context, args: Args) -> Result:
    """`fields`: field → value as the setup says it, null for none. A hidden value stands for what is there."""
    from reconciler_specs.tables import TABLES  # with it comes the whole language, which few verbs need

    op = f"{shaped.kind}.set"
    key, given = text(args, "id", op), closed(args.get("fields"), sorted(TABLES[shaped.kind].fields), f"{op}: fields")
    if not given:
        raise Refused(f"{op} changes nothing; name at least one field")
    _still(shaped, ctx, key)
    values, named = dotted.referenced(dict(given))
    refuse_pasted("", values)
    why = lacking(named, ctx.profile.env.names(), True) or "; ".join(
        shaped.refused({k: v for k, v in values.items() if v is not None}).values()
    )
    if why:
        raise Refused(f"{op}: {why}")
    found = shaped.found(ctx.profile.config.raw, key)
    old = {n: v for n, v in found.fields.items() if not isinstance(v, Unknown)} if found else {}
    made = Edits()
    try:
        shaped.edit(key, {name: CLEAR if value is None else value for name, value in values.items()}, old, made)
    except CannotWrite as error:
        raise Refused(str(error)) from error
    _write(ctx, made)
    return {"ran": f"set {shaped.kind} {key} in profile {ctx.profile.name} ({', '.join(sorted(given))})", "id": key}


def _delete(shaped: Shaped, ctx: Context, args: Args) -> Result:
    op = f"{shaped.kind}.delete"
    key = text(args, "id", op)
    _still(shaped, ctx, key)
    if parts.seen(ctx.profile.config.raw, shaped.parts(key)) is None:
        raise Refused(f"{op}: profile {ctx.profile.name} has no {key}")
    _write(ctx, gone(shaped, key))
    return {"ran": f"took {shaped.kind} {key} out of profile {ctx.profile.name}", "id": key, "deleted": True}


def _still(shaped: Shaped, ctx: Context, key: str) -> None:
    each = shaped.parts(key)
    before = ctx.folder.seen(ctx.profile.name, ())
    ctx.still(f"{shaped.kind} {key}", parts.seen(ctx.profile.config.raw, each), parts.seen(before, each))


def _write(ctx: Context, made: Edits) -> None:
    config = ctx.profile.config
    try:
        lists = parts.with_members(config.raw, made.adds, made.removes)
    except parts.NoList as error:
        raise Refused(str(error)) from error
    for path, value in (*made.sets, *lists):
        config.set(tuple(path), value)
    for path in made.unsets:
        config.unset(tuple(path))


def _skill(ctx: Context, key: str) -> tuple[Path | None, dict[str, str] | str | None, bool]:
    """A skill's folder, its files (or why they cannot be told), and whether it is off. Raises Refused."""
    if outside(key) or "/" in key:
        raise Refused(f"{key}: not a skill's name")
    home = ctx.profile.folder
    try:
        folder, files = skillfolder.seen(home, SKILLS, key)
    except (skillfolder.Odd, OSError) as error:
        raise Refused(f"{key}: {error}") from error
    off = key in parts.members(ctx.profile.config.raw, DISABLED)
    if ctx.expect is not None:
        path = folder.relative_to(home).as_posix() if folder else ""
        if skillfolder.fingerprint(path, files, off, ctx.expect.key) != ctx.expect.digest:
            raise Refused(f"skill {key} has changed since it was looked at", stale=True)
    return folder, files, off


def _set_skill(ctx: Context, args: Args) -> Result:
    """`files`: path → text, all of its folder; `enabled`; `keep`: a copy of what was there goes into the trash."""
    key, on = text(args, "id", "skills.set"), flag(args, "enabled")
    new = _files(args.get("files"))
    if on is None and new is None:
        raise Refused("skills.set changes nothing; name at least one of files, enabled")
    folder, files, off = _skill(ctx, key)
    if on is not None and on is off:
        _write(ctx, _switch(key, on))
    if new is not None:
        if isinstance(files, str):
            raise Refused(f"{key}: {files}")
        home = ctx.profile.folder.resolve()
        there = home / folder.relative_to(ctx.profile.folder) if folder else home / SKILLS[0] / key
        try:
            if folder is not None and flag(args, "keep"):
                skillfolder.keep(there, ctx.folder.root / trash.NAME)
            skillfolder.sync(home, there, new, files or ())
        except OSError as error:
            raise Refused(f"{key}: {error.strerror or error}") from error
    return {"ran": f"set skill {key} in profile {ctx.profile.name}", "id": key}


def _files(value: Any) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise Refused("skills.set: files is a mapping of path to text")
    for path, body in value.items():
        if outside(path):
            raise Refused(f"skills.set: {path}: not a path inside the skill")
        if len(body.encode()) > skillfolder.LARGEST:
            raise Refused(f"skills.set: {path}: larger than {skillfolder.LARGEST >> 20} MiB")
    if skillfolder.SKILL not in value or len(value) > skillfolder.MOST:
        raise Refused(f"skills.set: files need a {skillfolder.SKILL}, and are at most {skillfolder.MOST}")
    return value


def _switch(key: str, on: bool) -> Edits:
    member = [[DISABLED, key]]
    return Edits(removes=member) if on else Edits(adds=member)


def _delete_skill(ctx: Context, args: Args) -> Result:
    key = text(args, "id", "skills.delete")
    folder, files, off = _skill(ctx, key)
    if folder is None and not off:
        raise Refused(f"skills.delete: profile {ctx.profile.name} has no skill {key}")
    if isinstance(files, str):
        raise Refused(f"{key}: {files}")
    if off:
        _write(ctx, _switch(key, True))
    if folder is not None:
        try:
            skillfolder.discard(folder, ctx.folder.root / trash.NAME)
        except OSError as error:
            raise Refused(f"{key}: {error.strerror or error}") from error
    return {"ran": f"moved skill {key} of profile {ctx.profile.name} into {trash.NAME}/", "id": key, "deleted": True}


VERBS: dict[str, Verb] = {
    **{f"{kind}.set": verb(partial(_set, shaped), "id", "fields") for kind, shaped in SHAPED.items()},
    **{f"{kind}.delete": verb(partial(_delete, shaped), "id") for kind, shaped in SHAPED.items()},
    f"{Kind.SKILL}.set": verb(_set_skill, "id", "files", "enabled", "keep"),
    f"{Kind.SKILL}.delete": verb(_delete_skill, "id"),
}
