"""Addresses: the author's names for things (`main/default/jobs/brief`), and targets that select them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, total_ordering


class Kind(StrEnum):
    """What a thing is. The value is its fixed word in an address; HOME and PROFILE have no word there."""

    HOME = "home"
    PROFILE = "profile"
    FILE = "files"
    SETTING = "settings"
    INFERENCE = "inference"
    JOB = "jobs"
    CHANNEL = "channels"
    ROUTE = "routes"
    WEBHOOK = "webhooks"
    MCP_SERVER = "mcp_servers"
    TOOLSET = "toolsets"
    SKILL = "skills"
    PLUGIN = "plugins"
    KIT = "planning_kits"
    SECRET = "secrets"


# Words that stand in an address between the profile and the key.
KIND_WORDS = frozenset(Kind) - {Kind.HOME, Kind.PROFILE}
# Kinds of which a profile has just one, so that they take no key.
SINGLETONS = frozenset({Kind.INFERENCE})


@total_ordering
@dataclass(frozen=True, slots=True)
class Address:
    """`HOME[/PROFILE]/KIND[/KEY]`. `profile` and `key` are "" where the kind has none.

    Raises ValueError from `parse` when the text is not an address.
    """

    home: str
    profile: str = ""
    kind: Kind = Kind.HOME
    key: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        return _parsed(text)

    @property
    def path(self) -> str:
        """The address below its home: what state is keyed by, so that a home's label may change."""
        return str(self).partition("/")[2]

    def within(self, home: str) -> Address:
        """The same thing below another home label."""
        return Address(home, self.profile, self.kind, self.key)

    def __str__(self) -> str:
        parts = [self.home]
        if self.profile:
            parts.append(self.profile)
        if self.kind in KIND_WORDS:
            parts.append(self.kind.value)
            if self.key:
                parts.append(self.key)
        return "/".join(parts)

    def __lt__(self, other: Address) -> bool:
        return str(self) < str(other)


@cache  # a plan reads each of its addresses several times
def _parsed(text: str) -> Address:
    home, *rest = text.split("/")
    if not home:
        raise ValueError("an address starts with a home id")
    if not rest:
        return Address(home)
    profile = "" if rest[0] in KIND_WORDS else rest.pop(0)
    if not rest:
        return Address(home, profile, Kind.PROFILE)
    if rest[0] not in KIND_WORDS:
        raise ValueError(f"{rest[0]!r} is not a kind (one of {', '.join(sorted(KIND_WORDS))})")
    kind, key = Kind(rest[0]), "/".join(rest[1:])
    if (kind in SINGLETONS) == bool(key):
        raise ValueError(f"{kind} takes {'no' if key else 'a'} key")
    return Address(home, profile, kind, key)


def selects(target: str, address: Address) -> bool:
    """Whether a command line's TARGET takes in `address`: an address, a prefix of one by whole parts, or a glob.

    `ADDRESS#field` selects the thing; the field is the caller's to cut off with `split_field`.
    """
    text = str(address)
    target = split_field(target)[0].rstrip("/")
    if any(c in target for c in "*?["):
        return fnmatchcase(text, target) or fnmatchcase(text, f"{target}/*")
    return text == target or text.startswith(f"{target}/")


def split_field(target: str) -> tuple[str, str | None]:
    """`main/default/jobs/brief#prompt` → (`main/default/jobs/brief`, `prompt`). Keys may hold no `#`."""
    address, mark, field = target.partition("#")
    return address, field if mark else None
