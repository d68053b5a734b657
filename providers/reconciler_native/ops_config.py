"""The verbs on config.yaml: settings by dotted path, and inference. Only their own paths change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler_shape import models
from reconciler_shape.dotted import join, owned, split
from reconciler_shape.hiding import HIDDEN, Hider, is_hidden
from reconciler_shape.models import INFERENCE

from . import worker
from .context import Args, Context, Result, Verb, closed, reference, text, verb
from .errors import LoadFailed, Refused
from .ops_reach import refuse_pasted


def _path(args: Args, op: str) -> tuple[str, ...]:
    try:
        path = split(text(args, "path", op))
    except ValueError as error:
        raise Refused(str(error)) from error
    why = owned(path, args.get("value"))
    if why:
        raise Refused(f"{op}: {why}")
    return path


def _set(ctx: Context, args: Args) -> Result:
    path = _path(args, "settings.set")
    if "value" not in args:
        raise Refused("settings.set: value is required")
    refuse_pasted(path[-1], args["value"])
    _still(ctx, path)
    _differences(ctx, path, args["value"])
    _own_block(ctx)
    return {"ran": f"set {join(path)} in profile {ctx.profile.name}", "path": join(path)}


def _unset(ctx: Context, args: Args) -> Result:
    path = _path(args, "settings.unset")
    _still(ctx, path)
    if not ctx.profile.config.unset(path):
        raise Refused(f"settings.unset: {join(path)} is not set in profile {ctx.profile.name}")
    _own_block(ctx)
    return {"ran": f"took {join(path)} out of profile {ctx.profile.name}", "path": join(path)}


def _still(ctx: Context, path: tuple[str, ...]) -> None:
    ctx.still(join(path), ctx.profile.config.get(path), ctx.folder.seen(ctx.profile.name, path))


def _own_block(ctx: Context) -> None:
    try:
        worker.check(ctx.profile.config.raw, "config.yaml")
    except LoadFailed as error:
        raise Refused(str(error)) from error


def _differences(ctx: Context, path: tuple[str, ...], new: Any) -> None:
    """Only what differs is written, so that comments beside it stay. A hidden value stands for what is there."""
    old = ctx.profile.config.get(path)
    if isinstance(new, dict) and HIDDEN in new:
        if old is None:
            raise Refused(f"{join(path)}: a hidden value stands for one that is there, and there is none")
        return
    if isinstance(old, dict) and isinstance(new, dict) and new and old and "$native" not in old:
        for key in [key for key in old if key not in new]:
            ctx.profile.config.unset((*path, key))
        for key, value in new.items():
            _differences(ctx, (*path, key), value)
        return
    if is_hidden(new):
        raise Refused(f"{join(path)}: it holds a hidden value, which cannot be written back as it was read")
    ctx.profile.config.set(path, new)


def _inference(ctx: Context, args: Args) -> Result:
    if not args:
        raise Refused("inference.set changes nothing; name at least one of default, fallbacks, auxiliary")
    config = ctx.profile.config
    now = {key: config.raw[key] for key in INFERENCE if key in config.raw}
    before = ctx.folder.seen(ctx.profile.name, ())
    seen = {key: before[key] for key in INFERENCE if key in before} if isinstance(before, dict) else now
    ctx.still(f"the inference of profile {ctx.profile.name}", now, seen)
    if "default" in args:
        _model(ctx, ("model",), "default", args["default"])
        for key in ("provider", "base_url", "api_base"):
            config.unset((key,))
    if "fallbacks" in args:
        config.unset(("fallback_model",))
        chain = args["fallbacks"]
        if chain is not None and not isinstance(chain, list):
            raise Refused("inference.set: fallbacks is a list of models")
        if chain:
            entries = [models.entry_of(_checked(ctx, model, "fallbacks"), "model") for model in chain]
            config.set(("fallback_providers",), entries)
        else:
            config.unset(("fallback_providers",))
    if "auxiliary" in args:
        tasks = {} if args["auxiliary"] is None else args["auxiliary"]
        if not isinstance(tasks, dict):
            raise Refused("inference.set: auxiliary is a mapping of task to model")
        standing = config.get(("auxiliary",))
        for task in sorted({*tasks, *(standing if isinstance(standing, dict) else ())}):
            if task in tasks or _names_a_model(config.get(("auxiliary", task))):
                _model(ctx, ("auxiliary", task), "model", tasks.get(task))
    return {
        "ran": f"set the inference of profile {ctx.profile.name} ({', '.join(sorted(args))})",
        "inference": {key: config.raw[key] for key in INFERENCE if key in config.raw},
    }


def _model(ctx: Context, path: tuple[str, ...], word: str, model: Any) -> None:
    """A model's keys below `path`, those of an older one taken away; what else stands there stays."""
    config = ctx.profile.config
    entry = models.entry_of(_checked(ctx, model, path[-1]), word) if model is not None else {}
    standing = config.get(path)
    if entry and not isinstance(standing, dict):
        config.set(path, entry)
        return
    if isinstance(standing, str):
        config.unset(path)
        return
    for key, value in entry.items():
        config.set((*path, key), value)
    for key in models.left_over(entry):
        config.unset((*path, key))


def _names_a_model(entry: Any) -> bool:
    if isinstance(entry, dict):
        return models.from_entry(entry, Hider(b"")) is not None
    return isinstance(entry, str) and bool(entry)


def _checked(ctx: Context, model: Any, what: str) -> Mapping[str, Any]:
    found = closed(model, models.KEYS, what)
    for key in ("provider", "model"):
        if not isinstance(found.get(key), str) or not found[key].strip():
            raise Refused(f"{what}.{key} is required, a text")
    if found.get("key") is not None:
        reference(found["key"], f"{what}.key", ctx.profile)
    return found


VERBS: dict[str, Verb] = {
    "settings.set": verb(_set, "path", "value"),
    "settings.unset": verb(_unset, "path"),
    "inference.set": verb(_inference, "default", "fallbacks", "auxiliary"),
}
