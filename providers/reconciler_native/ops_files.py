"""The verbs on a profile's files: a closed list of targets, whole or our marked block in them."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

from reconciler_shape import block
from reconciler_shape.paths import MODE, content, outside

from .context import Args, Context, Result, Verb, text, verb
from .errors import LoadFailed, Refused

SINGLE = frozenset({"SOUL.md", "AGENTS.md"})
FOLDERS = frozenset(
    {".agents", "memories", "scripts", "hooks", "skills", "plugins", "skill-bundles", "skins", "workspace"}
)
CODE = frozenset({"scripts", "hooks", "plugins"})
"""Folders whose files are run."""
LIMIT = 1 << 20  # bytes


def refusal(path: str) -> str:
    """Why `path` cannot be declared as a file of a profile, "" if it can."""
    parts = path.split("/")
    if outside(path):
        return f"{path}: not a path inside the home"
    if path in SINGLE or (len(parts) > 1 and parts[0] in FOLDERS):
        return ""
    allowed = ", ".join([*sorted(SINGLE), *(f"{folder}/…" for folder in sorted(FOLDERS))])
    return f"{path} is not a file that a setup may write (allowed: {allowed})"


def usual(path: str) -> int:
    """The mode of a new file: what programs read may be read by all, the rest by its owner."""
    return 0o600 if path in SINGLE or path.split("/")[0] in ("memories", "workspace") else 0o644


def _target(ctx: Context, args: Args, op: str) -> tuple[str, Path]:
    path = text(args, "path", op)
    why = refusal(path)
    if why:
        raise Refused(why)
    target = ctx.profile.folder / path
    if target.parent.resolve() != ctx.profile.folder.resolve() / Path(path).parent:
        raise Refused(f"{path}: its folder is reached through a link")
    return path, target


def _read(ctx: Context, path: str, target: Path) -> tuple[bytes | None, int]:
    try:
        data = ctx.home.disk.read(target, LIMIT)
    except LoadFailed as error:
        raise Refused(str(error)) from error
    mode = stat.S_IMODE(target.stat(follow_symlinks=False).st_mode) & 0o777 if data is not None else 0
    if ctx.expect is not None:
        seen = None if data is None else content(data, mode, ctx.expect.key)
        ctx.still(path, seen)
    return data, mode


def _decoded(data: bytes | None, path: str) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is not a text (byte {error.start})") from error


def _set(ctx: Context, args: Args) -> Result:
    path, target = _target(ctx, args, "files.set")
    data, mode = _read(ctx, path, target)
    new: Any = args.get("text")
    if new is not None and not isinstance(new, str):
        raise Refused("files.set: text must be a text")
    if args.get("block") is not None:
        if not isinstance(args["block"], str):
            raise Refused("files.set: block must be a text")
        try:
            new = block.put(new if new is not None else _decoded(data, path), path, _owner(args), args["block"])
        except block.Torn as error:
            raise Refused(str(error)) from error
    if args.get("mode") is not None:
        if not MODE.fullmatch(str(args["mode"])):
            raise Refused(f"files.set: {args['mode']} is not a mode such as 0644 or 0755")
        mode = int(str(args["mode"]), 8)
    elif data is None:
        mode = usual(path)
    if new is None and data is None:
        raise Refused("files.set: text or block is required for a new file")
    body = new.encode() if new is not None else data or b""
    if len(body) > LIMIT:
        raise Refused(f"{path}: larger than {LIMIT >> 20} MiB")
    ctx.home.disk.write(target, body, mode)
    return {"ran": f"wrote {path} in profile {ctx.profile.name}", "path": path, "bytes": len(body)}


def _owner(args: Args) -> str:
    owner = args.get("owner") or "setup"
    if not isinstance(owner, str) or not re.fullmatch(r"[A-Za-z0-9_.-]+", owner):
        raise Refused("files: owner must be a name")
    return owner


def _delete(ctx: Context, args: Args) -> Result:
    """`what`: `whole`, `block`, or `look`: the block if there is one, the whole file only where programs are."""
    path, target = _target(ctx, args, "files.delete")
    data, mode = _read(ctx, path, target)
    what = args.get("what") or "whole"
    if what not in ("whole", "block", "look"):
        raise Refused("files.delete: what is one of whole, block, look")
    gone = {"ran": f"removed {path} from profile {ctx.profile.name}", "path": path, "deleted": True}
    if data is None:
        if ctx.expect is None:
            raise Refused(f"files.delete: no file {path}")
        return gone
    try:
        left = _left(data, path, what, _owner(args))
    except block.Torn as error:
        raise Refused(str(error)) from error
    if left:
        ctx.home.disk.write(target, left.encode(), mode)
    else:
        ctx.home.disk.remove(target)
    return gone


def _left(data: bytes, path: str, what: str, owner: str) -> str:
    """What stays of the file. Raises Refused, Torn."""
    if what == "look":
        found = block.find(data.decode("utf-8", errors="replace"), path, owner)
        if found is None and path.split("/")[0] not in FOLDERS:
            raise Refused(f"{path} has none of our markers, so that it is not known to be ours")
        what = "whole" if found is None else "block"
    return "" if what == "whole" else block.put(_decoded(data, path), path, owner, None)


VERBS: dict[str, Verb] = {
    "files.set": verb(_set, "path", "text", "block", "mode", "owner"),
    "files.delete": verb(_delete, "path", "what", "owner"),
}
