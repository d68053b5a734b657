"""The verbs on planning kits: card types and status flows for one kind of work, a file each (`kits/NAME.yaml`).

The rules are those of the setup's own kits (`reconciler_specs.kit`). A kit here may say less: types by name only, where
its source says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from .context import Args, Context, Result, Verb, closed, maybe_text, text, verb
from .errors import Refused
from .folder import KIT, KITS
from .kitfile import KitFile

FIELDS = ("source", "kind", "title", "purpose", "container", "types", "flows", "board")
LIMIT = 1 << 18  # bytes of one kit's file

_SOURCE = re.compile(r"(?:viable|file|kit):\S.*")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_BOARD = ("slug", "name", "description", "icon", "color", "workdir")


def view(name: str, store: KitFile) -> Result:
    """The kit as it is kept; fields that we do not know stand in it as they are."""
    return {"name": name, **store.raw}


def _apply(ctx: Context, args: Args) -> Result:
    name, store = _named(ctx, args, "kits.apply")
    given = {key: args[key] for key in FIELDS if key in args}
    if not given:
        raise Refused(f"kits.apply changes nothing; name at least one of {', '.join(FIELDS)}")
    ctx.still(f"kit {name}", store.raw if store.there else None)
    new = {key: _field(key, value) for key, value in given.items()}
    whole = {key: value for key, value in {**store.raw, **new}.items() if value is not None}
    _together(whole)
    changed = []
    for key, value in new.items():
        standing = store.raw.get(key)
        if value is None:
            changed += [key] if store.unset((key,)) else []
            continue
        before = store.encode("")
        store.set((key,), _with_unknown(key, value, standing))
        changed += [key] if store.encode("") != before else []
    if len(store.encode("")) > LIMIT:
        raise Refused(f"kit {name}: larger than {LIMIT >> 10} KiB")
    if not store.raw:
        raise Refused(f"kit {name} would be empty; kits.remove takes it away")
    said = ", ".join(changed) if changed else "as it was"
    return {"ran": f"applied kit {name} in profile {ctx.profile.name} ({said})", "name": name, "kit": view(name, store)}


def _remove(ctx: Context, args: Args) -> Result:
    name, store = _named(ctx, args, "kits.remove")
    if not store.there:
        raise Refused(f"kits_remove: no kit {name}", stale=ctx.expect is not None)
    ctx.still(f"kit {name}", store.raw)
    store.clear()
    return {"ran": f"removed kit {name} from profile {ctx.profile.name}", "name": name, "kit": None, "deleted": True}


def _list(ctx: Context, args: Args) -> Result:
    kits = [view(name, ctx.profile.kit(name)) for name in ctx.profile.kits()]
    return {"ran": f"{len(kits)} planning kits in profile {ctx.profile.name}", "kits": kits}


def _named(ctx: Context, args: Args, op: str) -> tuple[str, KitFile]:
    name = text(args, "name", op)
    if not KIT.fullmatch(name):
        raise Refused(f"{op}: {name!r} is no name of a kit (small letters, digits, '_', '.' and '-', at most 63)")
    if (ctx.profile.folder / KITS).is_symlink():
        raise Refused(f"{op}: {KITS}/ is a link; a native home's own files lie in it")
    return name, ctx.profile.kit(name)


def _field(key: str, value: Any) -> Any:
    """One field in proper form; None for none. Raises Refused naming the part that is wrong."""
    if value is None or value == "":
        return None
    if key == "container":
        return _texts(closed(value, ("id", "label"), key), key, ("id",))
    if key == "board":
        board = _texts(closed(value, _BOARD, key), key, ("slug",))
        if not _SLUG.fullmatch(board["slug"]):
            raise Refused(f"board.slug {board['slug']!r} is not one: small letters, digits, '_' and '-'")
        return board
    if key in ("types", "flows"):
        return _listed(value, key)
    found = maybe_text({key: value}, key)
    if key == "source" and found is not None and not _SOURCE.fullmatch(found):
        raise Refused(f"source {found!r} is none: write viable:<kit>, file:<path> or kit:<name>")
    return found


def _texts(found: Mapping[str, Any], what: str, required: Collection[str]) -> dict[str, str]:
    for key, value in found.items():
        if not isinstance(value, str) or not value.strip():
            raise Refused(f"{what}.{key} must be a text")
    for key in required:
        if key not in found:
            raise Refused(f"{what}.{key} is required")
    return dict(found)


def _listed(value: Any, of: str) -> list[Any]:
    """Types or flows in proper form; types may be their ids alone. Raises Refused naming the part that is wrong."""
    # With it comes the whole language, which few verbs need.
    from reconciler_specs import kit
    from reconciler_specs.values import Refusal, names

    try:
        if of == "types" and isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return list(names(value))
        return list(kit.listed(value, of))
    except Refusal as refusal:
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in refusal.path)
        raise Refused(f"{of}{where}: {refusal.message}") from refusal


def _together(whole: Mapping[str, Any]) -> None:
    """What no field can say alone. Raises Refused."""
    types = whole.get("types")
    flows = whole.get("flows")
    known = {flow.get("id") for flow in flows if isinstance(flow, dict)} if isinstance(flows, list) else set()
    for item in types if isinstance(types, list) else []:
        if isinstance(item, str) and not whole.get("source"):
            raise Refused(f"types: {item!r} is only named, and the kit has no source that says what it is")
        flow = item.get("flow") if isinstance(item, dict) else None
        if flow is not None and flow not in known and not whole.get("source"):
            raise Refused(f"types: {item['id']!r} names the flow {flow!r}, which the kit does not have")


def _with_unknown(of: str, new: Any, standing: Any) -> Any:
    """The new value with the fields that somebody else keeps in the same mapping, or in the record of the same id."""
    from reconciler_specs import kit

    if isinstance(new, dict) and isinstance(standing, dict):
        known = _BOARD if of == "board" else kit.LISTS.get(of, ("id", "label"))
        merged = {key: _with_unknown(key, value, standing.get(key)) for key, value in new.items()}
        return merged | {key: value for key, value in standing.items() if key not in known}
    if isinstance(new, list) and isinstance(standing, list) and of in kit.LISTS:
        by_id = {item.get("id"): item for item in standing if isinstance(item, dict)}
        return [_with_unknown(of, item, by_id.get(item["id"])) if isinstance(item, dict) else item for item in new]
    return new


VERBS: dict[str, Verb] = {
    "kits.apply": verb(_apply, "name", *FIELDS),
    "kits.list": verb(_list, reads=True),
    "kits.remove": verb(_remove, "name"),
}
