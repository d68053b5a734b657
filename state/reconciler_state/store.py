"""Where state is kept: the reading half that planning gets, the writing half that apply gets, and one in memory."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from .codec import body
from .errors import StateMoved
from .record import HomeState

KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True, order=True)
class Physical:
    """A home as it is, whatever setups call it: place name, harness, real path at the place (L3)."""

    place: str
    harness: str
    path: str

    @classmethod
    def of(cls, state: HomeState) -> Physical:
        return cls(state.place, state.harness, state.path)

    @property
    def key(self) -> str:
        """A file name: something for the eye, and a digest that tells homes apart."""
        digest = hashlib.sha256("\0".join((self.place, self.harness, self.path)).encode("utf-8", "surrogatepass"))
        return f"{slug(self.harness)}-{slug(self.path.rpartition('/')[2])}-{digest.hexdigest()[:16]}"


def slug(text: str) -> str:
    """Text as part of a file name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:24].rstrip("-") or "home"


class StateReader(Protocol):
    def read(self, physical: Physical) -> HomeState | None:
        """None iff nothing was ever recorded. Raises StateError."""
        ...

    def list(self, skip: Collection[Physical] = ()) -> Sequence[Physical]:
        """Every home with a state but those in `skip`, sorted."""
        ...

    def key_for(self, physical: Physical) -> bytes | None:
        """The home's 32 random bytes for digests of what must not be stored (L5); None if none are kept yet."""
        ...


class StateStore(StateReader, Protocol):
    def write(self, state: HomeState, expected_serial: int) -> HomeState:
        """Records `state` and returns it as recorded; unchanged content is not written (L7).

        `expected_serial` is that of the state this run has read or written last, 0 for none. Raises StateMoved if
        another one is there now.
        """
        ...

    def probe(self) -> None:
        """Raises StateError if nothing can be written: asked before the first door call."""
        ...

    def keep_key(self, physical: Physical, key: bytes) -> None:
        """Keeps a key for the home, unless one is kept already."""
        ...


class MemoryStore:
    """A StateStore for tests and for homes that keep nothing."""

    def __init__(self) -> None:
        self.states: dict[Physical, HomeState] = {}
        self.keys: dict[Physical, bytes] = {}
        self.writes = 0

    def read(self, physical: Physical) -> HomeState | None:
        return self.states.get(physical)

    def list(self, skip: Collection[Physical] = ()) -> Sequence[Physical]:
        return sorted(set(self.states) - set(skip))

    def key_for(self, physical: Physical) -> bytes | None:
        return self.keys.get(physical)

    def keep_key(self, physical: Physical, key: bytes) -> None:
        self.keys.setdefault(physical, key)

    def write(self, state: HomeState, expected_serial: int) -> HomeState:
        physical = Physical.of(state)
        current = self.states.get(physical)
        recorded = successor(current, state, expected_serial)
        # By what would be written, not by ==: True and 1 are equal to Python and not in a file.
        if current is not None and body(current) == body(recorded):
            return current
        self.states[physical] = recorded
        self.writes += 1
        return recorded

    def probe(self) -> None:
        return None


def successor(current: HomeState | None, state: HomeState, expected_serial: int) -> HomeState:
    """What is recorded after `current` when a run that knew `expected_serial` writes other content.

    Raises StateMoved as StateStore.write does.
    """
    serial = current.serial if current else 0
    where = f"the state of {state.path}"
    if serial < expected_serial:
        raise StateMoved(f"{where} went back from serial {expected_serial} to {serial}: an older copy was put in place")
    if serial > expected_serial:
        raise StateMoved(f"{where} is at serial {serial}, and this run read {expected_serial}: another run wrote it")
    if current is None:
        return replace(state, lineage=state.lineage or secrets.token_hex(16), serial=1, damaged=())
    if state.lineage != current.lineage:
        raise StateMoved(f"{where} has lineage {current.lineage}, and this run read {state.lineage or 'none'}")
    return replace(state, serial=serial + 1, damaged=())
