"""Jobs as they are shown, kept with what hiding has to know of them: a daemon is asked for the same ones again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler_shape.hiding import Hider

from . import record

_NOBODY = Hider(b"")
_NAMES = frozenset(
    {"flow", "from", "id", "name", "path", "platform", "profile", "slug", "source", "surface", "to", "user"}
)
"""Arguments that say which thing is meant: an error names it."""
_NAME = re.compile(r"[A-Za-z0-9_.@/:|-]{1,64}")
_TIMES = frozenset({"schedule", "expr", "run_at", "tz", "minutes"})
"""Arguments that say when: a person has to see which of its words is wrong."""
_TIME = re.compile(r"(?:every +|in +)?[0-9*/,:+TZ-]{1,32}(?: +[0-9*/,-]{1,16}){0,5}[mhd]?")
_QUOTED = re.compile(r"""(['"`])(.+?)\1""", re.DOTALL)
_TELLING = 8  # a shorter value that is not quoted may as well be a word of the sentence


class Shown(dict[str, Any]):
    """A job's view, not to be changed. `plain` iff no key and no look in it is a secret's; `text` is its JSON, `zone`
    the home's that it was made with."""

    __slots__ = ("plain", "text", "zone")

    def __init__(self, job: dict[str, Any], zone: str) -> None:
        super().__init__(record.view(job, zone))
        self.zone = zone
        self.text = json.dumps(self)
        self.plain = _NOBODY.whole(self) is self


def hidden(result: dict[str, Any], hider: Hider, secrets: Sequence[str]) -> dict[str, Any]:
    """A verb's result with every secret in it hidden; of listed jobs only those are walked through that need it.

    `secrets` are those that the hider knows.
    """
    jobs = result.get("jobs")
    if not isinstance(jobs, list) or not all(isinstance(job, Shown) for job in jobs):
        whole: dict[str, Any] = hider.whole(result)
        return whole
    # One that JSON writes with an escape is not found in a text of JSON.
    odd = any(json.dumps(secret)[1:-1] != secret for secret in secrets)
    return {
        **hider.whole({**result, "jobs": []}),
        "jobs": [
            job if job.plain and not odd and not any(secret in job.text for secret in secrets) else hider.value(job)
            for job in jobs
        ],
    }


def encoded(answer: Mapping[str, Any]) -> bytes:
    """A verb's answer as JSON; listed jobs are in that form already."""
    result = answer.get("result")
    jobs = result.get("jobs") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(jobs, list) or not all(isinstance(job, Shown) for job in jobs):
        return json.dumps(answer).encode()
    # The jobs come last, into the empty list that stands there.
    rest = {key: value for key, value in result.items() if key != "jobs"}
    head = json.dumps({**answer, "result": {**rest, "jobs": []}})
    return f"{head.removesuffix(']}}')}{', '.join(job.text for job in jobs)}]}}}}".encode()


def unsaid(words: str, args: Mapping[str, Any]) -> str:
    """An error without the values of a verb's arguments: it says what is wrong with which, and a log keeps no more.
    What only names the thing stays."""
    wholes = _wholes(args)
    for whole in wholes:
        words = words.replace(whole, "‹hidden›")
    said = set(_values(args))
    names = {value for value, is_name in said if is_name}
    values = sorted({value for value, is_name in said if not is_name}, key=len, reverse=True)
    spaced = [" ".join(value.split()) for value in values]
    for value in values:
        forms = {
            value,
            " ".join(value.split()),
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            repr(value)[1:-1],
        }
        for form in sorted(forms, key=len, reverse=True):
            if len(form) >= _TELLING:
                words = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", "‹hidden›", words)

    def blot(found: re.Match[str]) -> str:
        inner = found[2].removesuffix("…")  # cut off
        plain = {inner, " ".join(inner.split()), re.sub(r"\\(.)", r"\1", inner)}
        hide = inner not in names and any(form in value for form in plain for value in (*values, *spaced, *wholes))
        return f"{found[1]}‹hidden›{found[1]}" if hide else found[0]

    return _QUOTED.sub(blot, words)


def _wholes(args: Mapping[str, Any]) -> list[str]:
    """The lists and mappings in a verb's arguments, as a sentence shows them that expected a text."""
    found: list[str] = []
    waiting: list[Any] = list(args.values())
    while waiting:
        value = waiting.pop()
        if value and isinstance(value, list | dict):
            found += [str(value), json.dumps(str(value))[1:-1]]
            waiting += value if isinstance(value, list) else value.values()
    return sorted(set(found), key=len, reverse=True)


def _values(value: Any, key: str = "") -> Iterator[tuple[str, bool]]:
    """The texts in a verb's arguments, each with whether it only names something."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _values(item, str(name))
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, key)
    elif isinstance(value, str) and value.strip():
        named = key in _NAMES and _NAME.fullmatch(value) is not None
        timed = key in _TIMES and _TIME.fullmatch(value.strip()) is not None
        yield value.strip(), named or timed
