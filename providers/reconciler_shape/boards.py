"""Planning kits where a harness has boards with statuses of its own: a kit is a board whose slug is the kit's key, and
its statuses become the harness's by what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.observe import Observed
from reconciler.provider import Canon
from reconciler_specs.resource import Resource
from reconciler_specs.shape import MAP_OF_SCALARS, Json

SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
OWN = "default"  # the board, and the profile of the home as a whole


@dataclass(frozen=True, slots=True)
class Boards:
    """What a harness's boards are: its name for people, its statuses, and which of them each intrinsic state is."""

    harness: str
    statuses: Sequence[str]
    means: Mapping[str, str]

    def canon(self, resource: Resource) -> Canon:
        """The board that a kit becomes; what of it no board can hold is refused, unless `on_unsupported: degrade`."""
        fields, key = resource.fields, resource.address.key
        refused: dict[str, str] = {}
        notes: list[str] = []
        board: dict[str, Json] = dict(fields.get("board", {}))
        if resource.address.profile != OWN:
            refused[""] = f"a board is of the whole home: declare it in the profile {OWN}"
        elif key == OWN:
            refused[""] = f"the board {OWN} is {self.harness}'s own; take another key"
        elif not SLUG.match(key):
            refused[""] = "the key becomes the board's slug: a-z, 0-9, _ and -"
        if board.get("slug", key) != key:
            refused["board"] = f"a board is known by its slug: give the kit the key {board['slug']}"
        for name in ("source", "types"):
            if name in fields:
                refused[name] = "what is in it is not known here: take the kit from a file, or one of kit:"
        if "kit" in fields:
            kit = fields["kit"]
            if resource.options.get("on_unsupported") != "degrade":
                statuses = ", ".join(self.statuses)
                refused["kit"] = f"{self.harness} has fixed statuses: {statuses}; write on_unsupported: degrade"
            notes += self._degraded(kit)
            if "title" in kit:
                board.setdefault("name", kit["title"])
        canonical = {"board": {**board, "slug": key}}
        return Canon(canonical, {"board": MAP_OF_SCALARS}, refused=refused, notes=tuple(notes))

    def _degraded(self, kit: Mapping[str, Any]) -> list[str]:
        """What becomes of each flow's statuses, a line each."""
        lines = []
        for flow in kit["flows"]:
            statuses = flow["statuses"]
            pairs = (f"{status.get('label', status['id'])} → {self.means[status['intrinsic']]}" for status in statuses)
            lines.append(f"{flow.get('label', flow['id'])}: {', '.join(pairs)}")
        return lines


def express(thing: Observed) -> dict[str, Json]:
    """Nothing: a board says nothing of types and flows, and a kit without them is none."""
    return {}
