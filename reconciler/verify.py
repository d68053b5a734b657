"""Whether a read-back is what was to be written: success is what it shows, never an exit code (L9). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from reconciler_specs.shape import SCALAR, Class, Json, Shape

from .merge import Path, child
from .observe import ABSENT, Seen
from .values import canonical, same

_FORMS = {"string": str, "number": int | float, "bool": bool}


def disagreements(planned: Seen, actual: Seen, shape: Shape | None = None) -> list[Path]:
    """Where `actual` (read back) is not what was `planned`; [] iff it is a completion of it.

    Every known leaf is equal; an unknown one (`{"$ref": …}`, `{"$unknown": type}`) may be anything of its type;
    nothing appears or vanishes, but a map's member that is null may as well be absent. A list goes by position
    unless `shape` says it is a set, whose members have to correlate both ways.
    """
    return list(dict.fromkeys(_compare(shape or SCALAR, planned, actual)))


def is_unknown(value: Seen) -> TypeGuard[dict[str, Any]]:
    """Whether a value will be known only after the write."""
    return isinstance(value, dict) and (value.keys() == {"$ref"} or value.keys() == {"$unknown"})


def _compare(shape: Shape, planned: Seen, actual: Seen) -> Iterable[Path]:
    if is_unknown(actual):
        return  # nothing was seen, so nothing disagrees
    if is_unknown(planned):
        form = _FORMS.get(str(planned.get("$unknown")))
        if form and actual is not None and (not isinstance(actual, form) or (form is not bool and actual is True)):
            yield ()
    elif isinstance(planned, dict) and isinstance(actual, dict):
        for key in {**planned, **actual}:
            want, have = (v.get(key, ABSENT) for v in (planned, actual))
            if want is ABSENT or have is ABSENT:
                if (want if have is ABSENT else have) is not None:
                    yield (key,)
            else:
                yield from ((key, *path) for path in _compare(child(shape, key), want, have))
    elif isinstance(planned, list) and isinstance(actual, list):
        inner = shape.of or SCALAR
        if shape.cls is Class.SET:
            lonely = [p for p in planned if not any(_fits(inner, p, a) for a in actual)]
            lonely += [a for a in actual if not any(_fits(inner, p, a) for p in planned)]
            yield from ((f"[={canonical(m)}]",) for m in lonely)
        else:
            for index in range(max(len(planned), len(actual))):
                if index < min(len(planned), len(actual)):
                    below = _compare(inner, planned[index], actual[index])
                    yield from ((f"[{index}]", *path) for path in below)
                else:
                    yield (f"[{index}]",)
    elif not same(planned, actual):
        yield ()


def _fits(shape: Shape, planned: Json, actual: Json) -> bool:
    return not any(True for _ in _compare(shape, planned, actual))
