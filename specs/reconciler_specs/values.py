"""Small values of the setup language: schedules, targets, durations, models, secret references, ids and names.

Each function takes a value as it was read and gives it back as plain JSON in the form of the field vocabulary
(docs/decisions/0001), or raises Refusal with the right form filled in. The only module that knows croniter.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainValidator

from .document import shown
from .scalars import OddFloat, OddInt
from .shape import Json
from .traps import TEXTS


class Refusal(ValueError):
    """A value that is not accepted. `path` leads from the value to the part that is wrong.

    `at_key` iff that is the last key of the path itself, not what stands under it.
    """

    def __init__(self, message: str, hint: str = "", path: tuple[str | int, ...] = (), at_key: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path
        self.at_key = at_key

    def under(self, *path: str | int) -> Refusal:
        """The same, for the value that holds this one at `path`."""
        return Refusal(self.message, self.hint, (*path, *self.path), self.at_key)


NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}\Z")
PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")


def described(value: Any) -> str:
    """What a value is, for “expected X, got …”."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing (null)"
    if isinstance(value, OddInt | OddFloat):
        return f"the number {value.text[:40]}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, dict):
        return "a map"
    return "a list" if isinstance(value, list) else f"the text {shown(value)}"


def written(value: Any) -> str:
    """A scalar as its author wrote it."""
    if isinstance(value, OddInt | OddFloat):
        return value.text
    return str(value).lower() if isinstance(value, bool) else str(value)


def text(value: Any) -> str:
    """A text. Numbers and words that YAML reads as something else are refused: quote them."""
    if type(value) is str:
        return value
    if isinstance(value, bool | int | float):
        raise Refusal(f"a text is expected, got {described(value)}", f'quote it: "{written(value)}"')
    raise Refusal(f"a text is expected, got {described(value)}", TEXTS)


def filled(value: Any) -> str:
    """A text that is not blank."""
    if not text(value).strip():
        raise Refusal("the text is empty", "leave the line out, or use unset: [field] to clear it in the harness")
    return str(value)


def flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"yes": "true", "on": "true", "no": "false", "off": "false"}
    low = str(value).lower()
    raise Refusal(f"true or false is expected, got {described(value)}", f"write {words[low]}" if low in words else "")


def count(value: Any) -> int:
    """A whole number, at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refusal(f"a whole number, at least 1, is expected, got {described(value)}")
    return int(value)


def word(*choices: str) -> Any:
    """A validator for one of a closed list of words."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise Refusal(f"one of {', '.join(choices)} is expected, got {described(value)}")

    return check


def names(value: Any) -> list[str]:
    """A list of texts, each once."""
    if isinstance(value, str):
        raise Refusal(f"a list is expected, got {described(value)}", f"write [{value}]")
    if not isinstance(value, list):
        raise Refusal(f"a list is expected, got {described(value)}")
    result: list[str] = []
    for i, item in enumerate(value):
        try:
            name = filled(item)
        except Refusal as refusal:
            raise refusal.under(i) from refusal
        if name in result:
            raise Refusal(f"{shown(name)} stands here twice", path=(i,))
        result.append(name)
    return result


def name_set(value: Any) -> Json:
    """A set: a list, or `{only: [...]}` for exactly these."""
    if isinstance(value, dict):
        if set(value) != {"only"}:
            raise Refusal("a list or {only: [...]} is expected")
        return {"only": names(value["only"])}
    return names(value)


def scalar_map(value: Any) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise Refusal(f"a map is expected, got {described(value)}")
    return plain(value)  # type: ignore[no-any-return]


def plain(value: Any) -> Json:
    """A free value as plain JSON: odd numbers become numbers. Infinity and not-a-number are refused."""
    if isinstance(value, dict):
        return {k: _inside(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [_inside(v, i) for i, v in enumerate(value)]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise Refusal(f"{written(value)} is not a number that JSON can hold", "quote it if it is a text")
    return float(value)


def _inside(value: Any, key: str | int) -> Json:
    try:
        return plain(value)
    except Refusal as refusal:
        raise refusal.under(key) from refusal


def ident(value: Any) -> str:
    """A chat, thread or user id: text, or a plain decimal integer (rule 12)."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int) and not isinstance(value, bool | OddInt) and value >= -(2**63):
        return str(int(value))
    if isinstance(value, int | float):
        raise Refusal(f"{written(value)} would change as a number", f'quote it: "{written(value)}"')
    raise Refusal(f"an id is expected, got {described(value)}", 'quote it: "…"')


def closed(value: Any, keys: tuple[str, ...], what: str) -> Mapping[str, Any]:
    """`value` as a map with no key but `keys`."""
    if not isinstance(value, dict):
        raise Refusal(f"{what} is expected, got {described(value)}")
    for key in value:
        if key not in keys:
            close = get_close_matches(key, keys, 1, 0.6)
            hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(keys)}"
            raise Refusal(f"{shown(key)} is not a key here", hint, (key,), at_key=True)
    return value


# --- durations ---------------------------------------------------------------------------------------------------

_DURATION = re.compile(r"([0-9]{1,6})([mhd])\Z")
_UNIT = {"m": 60, "h": 3600, "d": 86400}


def duration(value: Any) -> str:
    """`30m`, `2h` or `1d`, at least 1m; kept as written. See `seconds`."""
    if isinstance(value, int) and not isinstance(value, bool):
        raise Refusal(f"a duration has a unit, got {described(value)}", f"write {int(value)}m for minutes")
    match = _DURATION.match(value) if isinstance(value, str) else None
    if match is None:
        raise Refusal(
            f"a duration is a whole number with m, h or d, got {described(value)}", "write for example 30m, 2h or 1d"
        )
    if int(match[1]) < 1:
        raise Refusal("a duration is at least 1m", "write 1m or more")
    return str(value)


def seconds(text_: str) -> int:
    """A duration in seconds. Pure; the text was accepted by `duration`."""
    return int(text_[:-1]) * _UNIT[text_[-1]]


# --- schedules ---------------------------------------------------------------------------------------------------

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(Z|z|[+-][0-9]{2}:[0-9]{2})?\Z"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_EVERY = re.compile(r"every +([0-9]+) *(m|h|d|min|mins|minutes?|hours?|days?)\Z", re.IGNORECASE)
_BY_CRON = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
            "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}  # fmt: skip


def schedule(value: Any) -> dict[str, str]:
    """`{at}`, `{every}` or `{cron, tz?}`; the harness's own string forms are refused, typed form filled in."""
    if isinstance(value, str):
        raise Refusal(
            f"a schedule is typed, got {described(value)}: harnesses read such a text differently", _typed(value)
        )
    value = closed(value, ("at", "every", "cron", "tz"), "a schedule ({cron: …}, {every: …} or {at: …})")
    given = [k for k in ("at", "every", "cron") if k in value]
    if len(given) != 1:
        raise Refusal(
            f"a schedule is exactly one of at, every, cron; got {' and '.join(given) or 'none'}",
            'for example {cron: "0 8 * * 1-5"}, {every: 30m}, {at: "2031-02-03T09:00:00+01:00"}',
        )
    if "tz" in value and "cron" not in value:
        raise Refusal("tz goes with cron only", "an `at` has its offset, an `every` needs none", ("tz",))
    key = given[0]
    try:
        result = {key: {"at": moment, "every": duration, "cron": cron}[key](value[key])}
    except Refusal as refusal:
        raise refusal.under(key) from refusal
    if "tz" in value:
        try:
            result["tz"] = zone(value["tz"])
        except Refusal as refusal:
            raise refusal.under("tz") from refusal
    return result


def _typed(value: str) -> str:
    value = value.strip()
    every = _EVERY.match(value)
    if every:
        return f"write schedule: {{every: {every[1]}{every[2][0].lower()}}}"
    if _DURATION.match(value):
        return f"write schedule: {{every: {value}}}, or {{at: …}} if it is to run once"
    if value in _BY_CRON:
        return f'write schedule: {{cron: "{_BY_CRON[value]}"}}'
    if len(value.split()) == 5:
        return f'write schedule: {{cron: "{shown(value)[1:-1]}"}}'
    if _RFC3339.match(value) or _DATE.match(value):
        return f'write schedule: {{at: "{_with_offset(value)}"}}'
    return 'write {cron: "0 8 * * 1-5"}, {every: 30m} or {at: "2031-02-03T09:00:00+01:00"}'


def _with_offset(value: str) -> str:
    if _DATE.match(value):
        return f"{value}T09:00:00+00:00"
    match = _RFC3339.match(value)
    return value if match and match[1] else f"{value}+00:00"


def moment(value: Any) -> str:
    """RFC 3339 with an offset, kept as written. A past one is no error here (rule 10)."""
    match = _RFC3339.match(value) if isinstance(value, str) else None
    if match is None or not match[1]:
        hint = 'write for example "2031-02-03T09:00:00+01:00"'
        if isinstance(value, str) and (match or _DATE.match(value)):
            hint = f'write "{_with_offset(value)}"'
        raise Refusal(f"a time with date, time and offset is expected, got {described(value)}", hint)
    try:
        datetime.fromisoformat(value.upper())
    except ValueError as error:
        raise Refusal(f"{shown(value)} is no time: {error}") from error
    return str(value)


def cron(value: Any) -> str:
    """Five fields that parse and fire within 8 years; kept as written but for single spaces."""
    if not isinstance(value, str):
        raise Refusal(f"a cron line is expected, got {described(value)}", 'quote it: cron: "0 8 * * 1-5"')
    fields = value.split()
    if len(fields) != 5:
        hint = f'write "{_BY_CRON[value]}"' if value in _BY_CRON else "minute hour day month weekday"
        raise Refusal(f"a cron line has five fields, got {described(value)}", hint)
    line = " ".join(fields)
    why = _never(line)
    if why:
        raise Refusal(f"the cron line {shown(line)} {why}", "minute hour day month weekday")
    return line


_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_PART = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?\Z")
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)  # five fields name no year: any start gives the same verdict


@lru_cache(maxsize=8192)
def _never(line: str) -> str:
    """Why a cron line can never run, "" if it can. Cheap for the usual forms; croniter judges the others."""
    fields = line.split(" ")
    given: list[set[int]] = []
    for field, (low, high) in zip(fields, _RANGES, strict=True):
        values: set[int] = set()
        for part in field.split(","):
            match = _PART.match(part)
            if match is None:
                return _by_croniter(line)
            first, last, step = match.groups()
            start = int(first) if first else low
            end = int(last) if last else start if first and not step else high
            if not low <= start <= end <= high or (step and not 0 < int(step) <= high):
                return _by_croniter(line)
            values.update(range(start, end + 1, int(step or 1)))
        given.append(values)
    days, months, weekdays = given[2:]
    if fields[2][0] == "*" or fields[4][0] != "*":
        return "" if days and months and weekdays else _by_croniter(line)
    # Only the day of the month counts: some month has to be long enough for the first of them.
    if any(min(days) <= _LONGEST[month - 1] for month in months):
        return ""
    return _by_croniter(line)


def _by_croniter(line: str) -> str:
    from croniter import CroniterBadDateError, CroniterError, croniter  # type: ignore[import-untyped]

    if re.search(r"[RrHh](?:\(|[/, ]|\Z)", line):
        return "is not a fixed one (R and H stand for chance)"
    try:
        croniter(line, _EPOCH, max_years_between_matches=8).get_next()
    except CroniterBadDateError:
        return "never fires within 8 years"
    except (CroniterError, ValueError, KeyError, IndexError):
        return "does not parse"
    return ""


@lru_cache(maxsize=1024)
def _zone_exists(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def zone(value: Any) -> str:
    """An IANA time zone."""
    name = text(value)
    if "/" not in name and name != "UTC":
        raise Refusal(f"{shown(name)} is not an IANA time zone", "write for example Europe/Vienna, or UTC")
    if not _zone_exists(name):
        close = get_close_matches(name, sorted(zoneinfo.available_timezones()), 1, 0.75)
        hint = f"did you mean {close[0]}?" if close else "write for example Europe/Vienna"
        raise Refusal(f"{shown(name)} is not an IANA time zone", hint)
    return name


# --- targets, models, secrets ------------------------------------------------------------------------------------


def target(value: Any) -> Json:
    """`local`, `owner_chat`, or `{to: CHANNEL, chat?, thread?}`."""
    if value in ("local", "owner_chat"):
        return value
    if value == "origin":
        raise Refusal(
            "a declared job has no origin: nobody started it in a chat",
            "write deliver: owner_chat, deliver: local, or {to: CHANNEL, chat: …}",
        )
    if isinstance(value, str) and value:
        to, *rest = value.split(":", 2)
        parts = [f"to: {to}", *(f'{k}: "{v}"' for k, v in zip(("chat", "thread"), rest, strict=False) if v)]
        hint = f"write {{{', '.join(parts)}}}" if shown(value) != "(hidden)" else "write {to: CHANNEL, chat: …}"
        raise Refusal(f"a delivery target is typed, got {described(value)}", hint)
    value = closed(value, ("to", "chat", "thread"), "local, owner_chat or {to: CHANNEL, chat?, thread?}")
    if "to" not in value:
        raise Refusal("to is needed: the channel", "write {to: CHANNEL, chat: …}")
    if "thread" in value and "chat" not in value:
        raise Refusal("a thread needs its chat", path=("thread",))
    result = {}
    for key, item in value.items():
        try:
            result[key] = filled(item) if key == "to" else ident(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return result


def secret_ref(value: Any) -> dict[str, str]:
    """`{secret: NAME}`, the name under which the home keeps it. The refusal never repeats the value (L5)."""
    if isinstance(value, str):
        variable = _VARIABLE.match(value)
        name = variable[1] if variable else "NAME"
        raise Refusal("a secret is only named here", f"write {{secret: {name}}}: the name the home keeps it under")
    if not isinstance(value, dict) or set(value) != {"secret"}:
        raise Refusal("{secret: NAME} is expected", "write {secret: NAME}: the name the home keeps it under")
    name = value["secret"]
    if not isinstance(name, str) or not SECRET.match(name):
        raise Refusal(
            "a secret's name is letters, digits and _",
            "write the name the home keeps it under, such as OPENROUTER_API_KEY",
            ("secret",),
        )
    return {"secret": name}


_MODEL_KEYS = ("provider", "model", "base_url", "key", "api_mode")


def model(value: Any) -> dict[str, Json]:
    """`{provider, model, base_url?, key?: {secret: NAME}, api_mode?}`."""
    value = closed(value, _MODEL_KEYS, "a model ({provider, model})")
    result: dict[str, Json] = {}
    for key, item in value.items():
        try:
            result[key] = secret_ref(item) if key == "key" else filled(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    for key in ("provider", "model"):
        if key not in result:
            raise Refusal(f"{key} is needed in a model", "write {provider: …, model: …}")
    return result


def model_or_name(value: Any) -> Json:
    """A model, or the name of one in `inference.models`."""
    return filled(value) if not isinstance(value, dict) else model(value)


Text = Annotated[str, PlainValidator(text)]
Filled = Annotated[str, PlainValidator(filled)]
Flag = Annotated[bool, PlainValidator(flag)]
Count = Annotated[int, PlainValidator(count)]
Names = Annotated[list[str], PlainValidator(names)]
NameSet = Annotated[Any, PlainValidator(name_set)]
ScalarMap = Annotated[dict[str, Any], PlainValidator(scalar_map)]
Duration = Annotated[str, PlainValidator(duration)]
Schedule = Annotated[dict[str, str], PlainValidator(schedule)]
Target = Annotated[Any, PlainValidator(target)]
SecretRef = Annotated[dict[str, str], PlainValidator(secret_ref)]
Model = Annotated[dict[str, Any], PlainValidator(model)]
ModelOrName = Annotated[Any, PlainValidator(model_or_name)]
Zone = Annotated[str, PlainValidator(zone)]
