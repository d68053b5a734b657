"""The ownership merge: what to write so that the setup's word holds and all else stays. Pure; values are plain JSON.

Rules (server-side apply's, with the base as our owned set):
- the declared value wins on what it says;
- what the base declared and the setup no longer says is removed, unless another setup declares it (L3);
- what nobody ever declared stays, in its place (L2);
- a keyed item or set member is removed whole, a map key only as far as it was declared;
- a value that does not have its shape's form (a string where a map is meant) is a scalar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reconciler_specs.shape import SCALAR, Class, Json, Shape, shape_of

from .observe import ABSENT, Absent, Seen
from .textmerge import merge_values
from .values import canonical, is_only, members, same

Path = tuple[str, ...]
"""Map keys as they are, keyed items as `[name="a"]`, set members as `[="a"]`; () is the value itself."""

COMPOSITE = frozenset({Class.SET, Class.KEYED, Class.MAP, Class.TEXT})


def merge(
    shape: Shape, base_declared: Seen, declared: Seen, observed: Seen, others: Sequence[Json] = ()
) -> Json | Absent:
    """The value to write, ABSENT if nothing is left. `others` is what other setups declare for the same field.

    A text in which both sides changed the same lines comes out as declared; `textmerge.merge3` tells.
    """
    if declared is ABSENT:
        return _prune(shape, base_declared, observed, others)
    match shape.cls:
        case Class.MAP if isinstance(declared, dict):
            return _merge_map(shape, base_declared, declared, observed, others)
        case Class.SET if is_only(declared):
            return members(declared)
        case Class.SET if isinstance(declared, list):
            gone = {canonical(m) for m in members(base_declared)} - {canonical(m) for o in others for m in members(o)}
            mine = {canonical(m): m for m in members(declared)}
            home = {canonical(m): m for m in members(observed)}
            kept = [k for k in home if k in mine or k not in gone]
            return [mine.get(k, home.get(k)) for k in _interleave(kept, list(mine))]
        case Class.KEYED if isinstance(declared, list):
            return _merge_keyed(shape, base_declared, declared, observed, others)
        case Class.TEXT:
            merged = merge_values(base_declared, declared, observed)
            return merged if isinstance(merged, str) else declared
        case _:
            return declared


def _merge_map(shape: Shape, base: Seen, declared: Json, observed: Seen, others: Sequence[Json]) -> Json:
    home = observed if isinstance(observed, dict) else {}
    out: dict[str, Json] = {}
    for key in [*home, *(k for k in declared if k not in home)]:
        value = merge(
            child(shape, key), _get(base, key), declared.get(key, ABSENT), home.get(key, ABSENT), _each(others, key)
        )
        if value is not ABSENT:
            out[key] = value
    return out


def _merge_keyed(shape: Shape, base: Seen, declared: Json, observed: Seen, others: Sequence[Json]) -> Json:
    inner = shape.of or SCALAR
    mine, home, was = _index(shape, declared), _index(shape, observed), _index(shape, base)
    theirs = [_index(shape, o) for o in others]
    kept: dict[str, list[Json]] = {}
    for key, items in home.items():
        if key in mine:
            kept[key] = []
        elif pruned := _prune_item(inner, was.get(key), items, [t[key][-1] for t in theirs if key in t]):
            kept[key] = pruned
    out: list[Json] = []
    for key in _interleave(list(kept), list(mine)):
        if key not in mine:
            out += kept[key]
            continue
        # Of several copies in the home none is known to be ours: the declared item replaces them all.
        live = home[key][0] if len(home.get(key, ())) == 1 else ABSENT
        before = was[key][-1] if key in was else ABSENT
        out.append(merge(inner, before, mine[key][-1], live, [t[key][-1] for t in theirs if key in t]))
    return out


def _prune(shape: Shape, base: Seen, observed: Seen, others: Sequence[Json]) -> Json | Absent:
    """The observed value without what `base` declared and none of the others does."""
    if base is ABSENT or observed is ABSENT:
        return observed
    match shape.cls:
        case Class.MAP if isinstance(base, dict) and isinstance(observed, dict):
            left = {k: _prune(child(shape, k), _get(base, k), v, _each(others, k)) for k, v in observed.items()}
            return {k: v for k, v in left.items() if v is not ABSENT} or ({} if others else ABSENT)
        case Class.SET if isinstance(observed, list):
            gone = {canonical(m) for m in members(base)} - {canonical(m) for o in others for m in members(o)}
            return [m for m in observed if canonical(m) not in gone] or ([] if others else ABSENT)
        case Class.KEYED if isinstance(base, list) and isinstance(observed, list):
            was, theirs = _index(shape, base), [_index(shape, o) for o in others]
            out: list[Json] = []
            for key, items in _index(shape, observed).items():
                out += _prune_item(shape.of or SCALAR, was.get(key), items, [t[key][-1] for t in theirs if key in t])
            return out or ([] if others else ABSENT)
        case _:
            return observed if others else ABSENT


def _prune_item(inner: Shape, was: list[Json] | None, items: list[Json], others: Sequence[Json]) -> list[Json]:
    if was is None:
        return items
    if not others:
        return []
    pruned = [_prune(inner, was[-1], item, others) for item in items]
    return [p for p in pruned if p is not ABSENT]


def covers(shape: Shape, observed: Seen, declared: Seen) -> bool:
    """Whether the home's value satisfies the declared one (laws, “o satisfies d”). An absent one is always met."""
    if declared is ABSENT:
        return True
    match shape.cls:
        case Class.MAP if isinstance(declared, dict):
            return isinstance(observed, dict) and all(
                key in observed and covers(child(shape, key), observed[key], value) for key, value in declared.items()
            )
        case Class.SET if isinstance(declared, list) or is_only(declared):
            if not isinstance(observed, list):
                return False
            want, have = ({canonical(m) for m in members(v)} for v in (declared, observed))
            return want == have if is_only(declared) else want <= have
        case Class.KEYED if isinstance(declared, list):
            if not isinstance(observed, list):
                return False
            home = _index(shape, observed)
            return all(
                len(home.get(key, ())) == 1 and covers(shape.of or SCALAR, home[key][0], items[-1])
                for key, items in _index(shape, declared).items()
            )
        case _:
            return same(observed, declared)


def changed(shape: Shape, before: Seen, after: Seen) -> frozenset[Path]:
    """The paths that differ, as fine as the class allows; empty iff both mean the same (order of a set does not).

    A removed keyed item is one path, so that it meets every change below it.
    """
    return frozenset(_changed(shape, before, after))


def equal(shape: Shape, a: Seen, b: Seen) -> bool:
    """Whether two values mean the same under `shape`."""
    return same(a, b) or (shape.cls in COMPOSITE and not changed(shape, a, b))


def meet(some: Iterable[Path], others: Iterable[Path]) -> frozenset[Path]:
    """The paths of `some` that lie at, above or below one of `others`."""
    others = frozenset(others)
    above = {o[:n] for o in others for n in range(len(o) + 1)}
    return frozenset(p for p in some if p in above or any(p[:n] in others for n in range(len(p))))


def _changed(shape: Shape, before: Seen, after: Seen) -> Iterable[Path]:
    if same(before, after):
        return
    found = False
    if shape.cls is Class.MAP and _form(dict, before, after):
        for key in {**(before if isinstance(before, dict) else {}), **(after if isinstance(after, dict) else {})}:
            for path in _changed(child(shape, key), _get(before, key), _get(after, key)):
                found = True
                yield (key, *path)
        if isinstance(before, dict) and isinstance(after, dict):
            return  # only the order within some set below differs
    elif shape.cls is Class.SET and (_form(list, before, after) or is_only(before) or is_only(after)):
        gone, come = ({canonical(m) for m in members(v)} for v in (before, after))
        for key in sorted(gone ^ come):
            found = True
            yield (f"[={key}]",)
        if type(before) is type(after):
            return  # only the order or a repetition differs
    elif shape.cls is Class.KEYED and _form(list, before, after):
        was, now = _index(shape, before), _index(shape, after)
        for key in {**was, **now}:
            for path in _changed_item(shape.of or SCALAR, was.get(key, []), now.get(key, [])):
                found = True
                yield (key, *path)
        if isinstance(before, list) and isinstance(after, list):
            return
    if not found:
        yield ()


def _changed_item(inner: Shape, was: list[Json], now: list[Json]) -> Iterable[Path]:
    if len(was) > 1 or len(now) > 1:
        return () if same(was, now) else ((),)
    if was and not now:
        return ((),)
    return _changed(inner, was[0] if was else ABSENT, now[0])


def owned_paths(shape: Shape, value: Seen) -> frozenset[Path]:
    """Every path that a declared value speaks for."""
    return frozenset(_owned(shape, value))


def _owned(shape: Shape, value: Seen) -> Iterable[Path]:
    if value is ABSENT:
        return
    if shape.cls is Class.MAP and isinstance(value, dict) and value:
        for key, inner in value.items():
            if key not in shape.fields:
                yield (key,)
            yield from ((key, *path) for path in _owned(child(shape, key), inner))
    elif shape.cls is Class.SET and members(value):
        yield from ((f"[={canonical(m)}]",) for m in members(value))
    elif shape.cls is Class.KEYED and isinstance(value, list) and value:
        for key, items in _index(shape, value).items():
            yield (key,)
            yield from ((key, *path) for path in _owned(shape.of or SCALAR, items[-1]))
    else:
        yield ()


def clashes(shape: Shape, declared: Seen, other: Seen) -> frozenset[Path]:
    """Where two setups' words for one field differ (L3): both speak for the path, with different values.

    Equal values, and different members of a set, are no clash. An exact set clashes with members it leaves out.
    """
    if declared is ABSENT or other is ABSENT:
        return frozenset()
    if shape.cls is Class.SET and not (is_only(declared) or is_only(other)):
        if isinstance(declared, list) and isinstance(other, list):
            return frozenset()
    elif shape.cls is Class.SET and is_only(declared) != is_only(other):
        exact, loose = (declared, other) if is_only(declared) else (other, declared)
        return frozenset() if covers(Shape(Class.SET), members(exact), loose) else changed(shape, declared, other)
    elif shape.cls is Class.MAP and isinstance(declared, dict) and isinstance(other, dict):
        both = [k for k in declared if k in other]
        return frozenset((k, *p) for k in both for p in clashes(child(shape, k), declared[k], other[k]))
    elif shape.cls is Class.KEYED and isinstance(declared, list) and isinstance(other, list):
        mine, theirs = _index(shape, declared), _index(shape, other)
        inner = shape.of or SCALAR
        return frozenset((k, *p) for k in mine if k in theirs for p in clashes(inner, mine[k][-1], theirs[k][-1]))
    return changed(shape, declared, other)


def show(path: Path) -> str:
    """A path for people: `.servers[name="a"].tags[="x"]`."""
    return "".join(part if part.startswith("[") else f".{part}" for part in path)


def shape_over(*values: Seen) -> Shape:
    """`shape_of` for several values of one setting: a key that only the base still has keeps its inner shape, so
    that taking it away leaves alone what was never declared below it."""
    maps = [v for v in values if isinstance(v, dict)]
    if not maps:
        return next((shape_of(v) for v in values if v is not ABSENT), SCALAR)
    keys = dict.fromkeys(k for m in maps for k in m)
    return Shape(Class.MAP, fields={k: shape_over(*(m[k] for m in maps if k in m)) for k in keys})


def child(shape: Shape, key: str) -> Shape:
    """The shape of a map's member."""
    return shape.fields.get(key, shape.of or SCALAR)


def _form(form: type, before: Seen, after: Seen) -> bool:
    """Both are of the form or nothing (absent, null), and not both nothing: then members can be told apart."""
    sides = [v for v in (before, after) if v is not ABSENT and v is not None]
    return bool(sides) and all(isinstance(v, form) for v in sides)


def _get(value: Seen, key: str) -> Seen:
    return value.get(key, ABSENT) if isinstance(value, dict) else ABSENT


def _each(values: Sequence[Json], key: str) -> list[Json]:
    return [v[key] for v in values if isinstance(v, dict) and key in v]


def _index(shape: Shape, value: Seen) -> dict[str, list[Json]]:
    """A keyed list by its items' keys, in order; more than one item per key only where the home repeats itself."""
    out: dict[str, list[Json]] = {}
    for item in value if isinstance(value, list) else ():
        out.setdefault(_item_key(shape, item), []).append(item)
    return out


def _item_key(shape: Shape, item: Json) -> str:
    if isinstance(item, dict):
        found = {k: item.get(k, shape.defaults.get(k, ABSENT)) for k in sorted(shape.keys)}
        parts = [f"{k}={canonical(v)}" for k, v in found.items() if v is not ABSENT]
        if parts:
            return f"[{','.join(parts)}]"
    return f"[={canonical(item)}]"  # no key at all: known by what it is


def _interleave(home: list[str], mine: list[str]) -> list[str]:
    """The home's members in their place, ours in our order, new ones before the shared one that they precede."""
    shared = set(home) & set(mine)
    ours = iter(mine)
    out: list[str] = []
    for key in home:
        if key not in shared:
            out.append(key)
            continue
        for key_of_ours in ours:
            out.append(key_of_ours)
            if key_of_ours in shared:
                break
    return [*out, *ours]
