"""What a verb of the operator works with, and the checks of its arguments that every verb shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from reconciler_shape.plain import digest

from . import schedule
from .errors import Refused
from .folder import Folder, Profile
from .home import Home

Args = Mapping[str, Any]
Result = dict[str, Any]


class Expect(NamedTuple):
    """The thing as the caller saw it: a keyed digest, "" for one that was not there."""

    key: bytes
    digest: str


class Context(NamedTuple):
    """One verb's surroundings: the folder under the write lock, the profile it acts in, the caller's clock."""

    home: Home
    folder: Folder
    profile: Profile
    now: datetime
    expect: Expect | None = None

    @property
    def zone(self) -> str:
        return self.profile.zone

    @property
    def stamp(self) -> str:
        return schedule.stored(self.now)

    def still(self, what: str, *seen: Any) -> None:
        """Raises Refused (stale) unless one of the values is the one that the caller saw; None is “not there”, and
        counts only as the first."""
        if self.expect is None:
            return
        for index, value in enumerate(seen):
            found = digest(value, self.expect.key) if value is not None else "" if index == 0 else None
            if found == self.expect.digest:
                return
        raise Refused(f"{what} has changed since it was looked at", stale=True)


class Verb(NamedTuple):
    """One verb: its arguments by name, and what carries it out. `reads` iff it changes nothing."""

    run: Callable[[Context, Args], Result]
    args: frozenset[str]
    reads: bool = False

    def check(self, op: str, args: Args) -> None:
        """Raises Refused naming the first argument that the verb does not know."""
        for name in args:
            if name not in self.args:
                known = ", ".join(sorted(self.args)) or "none"
                raise Refused(f"{op}: unknown argument {name!r} (it takes: {known})")


def verb(run: Callable[[Context, Args], Result], *args: str, reads: bool = False) -> Verb:
    return Verb(run, frozenset(args), reads)


def text(args: Args, name: str, op: str) -> str:
    """A text that is not blank. Raises Refused."""
    value = args.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Refused(
            f"{name} is required" if value in (None, "") or isinstance(value, str) else f"{op}: {name} must be a text"
        )
    return value.strip()


def maybe_text(args: Args, name: str) -> str | None:
    """A text, None for none or a blank one. Raises Refused for anything else."""
    value = args.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Refused(f"{name} must be a text")
    return value.strip() or None


def texts(args: Args, name: str) -> list[str]:
    """A list of texts, none blank; a single text is a list of one. Raises Refused."""
    value = args.get(name)
    if value is None:
        return []
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or any(not isinstance(item, str) or not item.strip() for item in items):
        raise Refused(f"{name} must be a list of texts")
    return list(dict.fromkeys(item.strip() for item in items))


def flag(args: Args, name: str) -> bool | None:
    value = args.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise Refused(f"{name} must be true or false")


def closed(value: Any, keys: Collection[str], what: str) -> Mapping[str, Any]:
    """A mapping with no other key. Raises Refused naming the one that is unknown."""
    if not isinstance(value, dict):
        raise Refused(f"{what}: a mapping is expected ({', '.join(keys)})")
    for key in value:
        if key not in keys:
            raise Refused(f"{what}.{key} is not known (one of {', '.join(keys)})")
    return value


_SECRET = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def reference(value: Any, what: str, profile: Profile) -> str:
    """`{secret: NAME}` or `{dotenv: NAME}` as `${NAME}`. Raises Refused; a value is never repeated."""
    name = value.get("secret", value.get("dotenv")) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(name, str) or not _SECRET.fullmatch(name):
        raise Refused(f"{what}: a secret is only named: {{secret: NAME}}, the name in the profile's .env")
    if name not in profile.env.names():
        raise Refused(f"{what}: the profile's .env has no {name}")
    return f"${{{name}}}"
