"""`config.yaml` as Hermes reads it: YAML 1.1 by PyYAML's safe loader. The only module here that knows YAML."""

from __future__ import annotations

from typing import Any

import yaml

from reconciler_specs.shape import Json

from .plain import to_json

LIMIT = 4 << 20  # bytes; a full config with every default is 13 KB
_VALUES = 1_000_000  # with every alias written out

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotReadable(ValueError):
    """The text is not what Hermes writes: `place` is path, line and column, `problem` the rest of the sentence."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem


def parse(data: bytes, path: str) -> dict[str, Json]:
    """The file's mapping, {} for an empty one, as plain JSON. Raises NotReadable."""
    try:
        found = yaml.load(data.decode("utf-8"), Loader=_LOADER)
    except UnicodeDecodeError as error:
        raise NotReadable(path, f"not UTF-8 at byte {error.start}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise NotReadable(f"{path}{where}", error.problem or "not proper YAML") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise NotReadable(path, str(error).splitlines()[0] if str(error) else "not proper YAML") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise NotReadable(f"{path}:1:1", f"a {type(found).__name__} where Hermes keeps a mapping")
    if _size(found, {}) > _VALUES:
        raise NotReadable(path, f"its aliases hold one another, or more than {_VALUES} values")
    plain = to_json(found)
    assert isinstance(plain, dict)
    return plain


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values there are with every alias written out; too many for what holds itself."""
    if not isinstance(value, (dict, list, tuple, set)):
        return 1
    if id(value) not in known:
        known[id(value)] = _VALUES + 1  # while it is open: met again from within
        items = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(item, known) for item in items)
    return known[id(value)]
