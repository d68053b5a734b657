"""A planning kit's definition: its card types and their status flows, checked; and the ready ones of this package.

What the platform's kit view calls a `key` is an `id` here: a value under a key that ends in “key” would be hidden as a
credential wherever it is shown. A kit's file may say either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from .document import read_document
from .errors import Reason
from .shape import ATOMIC, SCALAR, Class, Json, Shape
from .values import Refusal, closed, described, filled, flag, word

INTRINSIC = ("planned", "in-progress", "closed")
"""What a status can mean, whatever it is called."""
KEYS = ("title", "purpose", "types", "flows")
LISTS: Mapping[str, tuple[str, ...]] = {
    "types": ("id", "label", "flow"),
    "flows": ("id", "label", "statuses", "transitions"),
    "statuses": ("id", "label", "intrinsic", "initial"),
}
"""The keys of an item of each list."""
SHAPE = Shape(Class.MAP, of=SCALAR, fields={"types": ATOMIC, "flows": ATOMIC})
READY = Path(__file__).parent / "kits"


def ready() -> list[str]:
    """The names of the kits in this package."""
    return sorted(path.stem for path in READY.glob("*.yaml"))


def ready_kit(name: str) -> dict[str, Json]:
    """The definition of one of `ready()`."""
    reasons: list[Reason] = []
    document = read_document((READY / f"{name}.yaml").read_bytes(), f"{name}.yaml", reasons)
    assert document is not None and not reasons, reasons  # a test loads each
    return definition(document.root.plain())


def definition(value: Any) -> dict[str, Json]:
    """A kit as `{title?, purpose?, types, flows}`, in one form. Raises Refusal with the path of what is wrong.

    Where no status of a flow is initial, the first one is.
    """
    given = closed(value, KEYS, "a kit (title, purpose, types, flows)")
    found: dict[str, Json] = {}
    for name in ("title", "purpose"):
        if name in given:
            found[name] = _under(name, filled, given[name])
    for name in ("types", "flows"):
        if name not in given:
            raise Refusal(f"{name} is needed")
        found[name] = _under(name, lambda value, of=name: listed(_with_ids(value), of), given[name])
    for flow in found["flows"]:
        if not any(status.get("initial") for status in flow["statuses"]):
            flow["statuses"][0]["initial"] = True
    together(found["types"], found["flows"])
    return found


def chosen(kit: Mapping[str, Json], types: Collection[str]) -> dict[str, Json]:
    """The kit with only these of its types, and the flows that they need. Raises Refusal for one that it lacks."""
    known = [item["id"] for item in kit["types"]]
    for i, name in enumerate(types):
        if name not in known:
            raise Refusal(f"the kit has no type {name}", f"one of {', '.join(known)}", (i,))
    kept = [item for item in kit["types"] if item["id"] in types]
    flows = {item.get("flow") for item in kept}
    return {**kit, "types": kept, "flows": [flow for flow in kit["flows"] if flow["id"] in flows]}


def listed(value: Any, of: str) -> list[dict[str, Json]]:
    """Types, flows or statuses: maps with an id of their own each. Raises Refusal."""
    if not isinstance(value, list) or not value:
        raise Refusal("a list is expected, and not an empty one")
    found: list[dict[str, Json]] = []
    for i, item in enumerate(value):
        one = _under(i, lambda record: _record(record, of), item)
        if one["id"] in (other["id"] for other in found):
            raise Refusal(f"the id {one['id']!r} stands there twice", path=(i,))
        found.append(one)
    return found


def _record(item: Any, of: str) -> dict[str, Json]:
    record = dict(closed(item, LISTS[of], "a map"))
    for name in ("id", "label", "flow"):
        if name in record:
            record[name] = _under(name, filled, record[name])
    if "id" not in record:
        raise Refusal("id is needed")
    if of == "statuses":
        if "intrinsic" not in record:
            raise Refusal(f"intrinsic is needed: one of {', '.join(INTRINSIC)}")
        _under("intrinsic", word(*INTRINSIC), record["intrinsic"])
        if not _under("initial", flag, record.get("initial", False)):
            record.pop("initial", None)
    if of == "flows":
        statuses = _under("statuses", lambda value: listed(value, "statuses"), record.get("statuses"))
        record["statuses"] = statuses
        if sum(bool(status.get("initial")) for status in statuses) > 1:
            raise Refusal("more than one status is initial", path=("statuses",))
        if "transitions" in record:
            names = [status["id"] for status in statuses]
            record["transitions"] = _under(
                "transitions", lambda value: _transitions(value, names), record["transitions"]
            )
    return record


def _transitions(value: Any, statuses: Collection[str]) -> list[dict[str, str]]:
    if not isinstance(value, list):
        raise Refusal("a list of {from, to} is expected")
    found = []
    for i, item in enumerate(value):
        one = _under(i, lambda record: dict(closed(record, ("from", "to"), "{from, to}")), item)
        for end in ("from", "to"):
            if end not in one:
                raise Refusal(f"{end} is needed", path=(i,))
            if not isinstance(one[end], str) or one[end] not in statuses:
                raise Refusal(f"the flow has no status {described(one[end])}", path=(i, end))
        found.append(one)
    return found


def together(types: Any, flows: Any) -> None:
    """What no item can say alone: a type's flow is one of the kit's. Raises Refusal."""
    known = {flow["id"] for flow in flows}
    for i, item in enumerate(types):
        if item.get("flow") not in known:
            said = (
                f"names the flow {item['flow']!r}, which the kit does not have" if "flow" in item else "flow is needed"
            )
            raise Refusal(said, f"one of {', '.join(sorted(known))}", ("types", i))


def _with_ids(value: Any) -> Any:
    """`key` as a kit view has it, read as `id`."""
    if isinstance(value, dict):
        renamed = {("id" if key == "key" and "id" not in value else key): item for key, item in value.items()}
        return {key: _with_ids(item) for key, item in renamed.items()}
    return [_with_ids(item) for item in value] if isinstance(value, list) else value


def _under(key: str | int, check: Any, value: Any) -> Any:
    try:
        return check(value)
    except Refusal as refusal:
        raise refusal.under(key) from refusal
