"""Policy: what plan does about drift, missing and removed things, and what may run without a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator
from pydantic import Field as Default

from .address import Kind
from .document import Node, shown
from .reading import Field, Fields, Reasons, check_keys, is_map, read
from .resource import Mode
from .values import Duration, Refusal, closed, count, described, filled, names, seconds, word

VERBS = ("create", "update", "set", "claim", "unset", "restore", "recreate", "adopt", "provision", "restart")
DELETING = ("delete",)
KINDS: Mapping[str, str] = {**{k.value: k.value for k in Kind}, "profiles": "profile", "homes": "home"}

_VERB_KIND = r"^[a-z]+ [a-z_]+$"
FIELDS: Fields = {
    "on_drift": Field(
        "What to do when a home's value moved away.",
        {"enum": ["hold", "restore", "watch", "capture"], "default": "hold"},
    ),
    "on_missing": Field(
        "What to do when a thing of ours is gone.", {"enum": ["recreate", "hold", "forget"], "default": "recreate"}
    ),
    "on_removed": Field("What to do with a thing that left the setup.", {"enum": ["delete"], "default": "delete"}),
    "unattended": Field(
        "What may be applied without a terminal, as `verb kind`: restore jobs.",
        {"type": "array", "items": {"type": "string", "pattern": _VERB_KIND}},
    ),
    "raise": Field(
        "What needs more consent than the rules ask, as `verb kind`: confirm or refuse.",
        {"type": "object", "additionalProperties": {"enum": ["confirm", "refuse"]}},
    ),
    "limits": Field(
        "The most deletes of a run, and the minutes it may take.",
        {
            "type": "object",
            "properties": {
                "deletes": {"type": "integer", "minimum": 1},
                "minutes": {"type": "integer", "minimum": 1},
            },
            "additionalProperties": False,
        },
    ),
    "confirm_within": Field("How long a plan file stays valid: 4h.", {"type": "string", "pattern": "^[0-9]+[mhd]$"}),
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Only what the author set; the others are None or empty. See `over` and the properties' defaults.

    `unattended` and `raise_` hold `verb kind`, the kind as its word in an address. `confirm_within` in seconds.
    """

    on_drift: Mode | None = None
    on_missing: str | None = None
    on_removed: str | None = None
    unattended: tuple[str, ...] | None = None
    raise_: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    confirm_within: int | None = None

    def over(self, below: Policy) -> Policy:
        """This policy on another one: per key, what is set here wins."""
        return Policy(
            self.on_drift or below.on_drift,
            self.on_missing or below.on_missing,
            self.on_removed or below.on_removed,
            below.unattended if self.unattended is None else self.unattended,
            {**below.raise_, **self.raise_},
            {**below.limits, **self.limits},
            below.confirm_within if self.confirm_within is None else self.confirm_within,
        )


DEFAULTS = Policy(Mode.HOLD, "recreate", "delete", ())


def _verb_kind(value: Any, verbs: tuple[str, ...]) -> str:
    parts = filled(value).split()
    if len(parts) != 2 or parts[0] not in (*VERBS, *DELETING) or parts[1] not in KINDS:
        raise Refusal(
            f"`verb kind` is expected, got {described(value)}",
            f"a verb ({', '.join(verbs)}) and a kind ({', '.join(KINDS)})",
        )
    if parts[0] not in verbs:
        raise Refusal(f"{shown(parts[0])} is never unattended", "deletes need --reviewed and a plan")
    return f"{parts[0]} {KINDS[parts[1]]}"


def _unattended(value: Any) -> tuple[str, ...]:
    result = []
    for i, item in enumerate(names(value)):
        try:
            result.append(_verb_kind(item, VERBS))
        except Refusal as refusal:
            raise refusal.under(i) from refusal
    return tuple(result)


def _raise(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Refusal("a map from `verb kind` to confirm or refuse is expected", 'write {"update jobs": confirm}')
    result = {}
    for key, item in value.items():
        try:
            result[_verb_kind(key, (*VERBS, *DELETING))] = word("confirm", "refuse")(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return result


def _on_removed(value: Any) -> str:
    if value == "pause":
        raise Refusal("pause is not part of this version yet", "a delete waits for --reviewed anyway")
    return str(word("delete")(value))


def _limits(value: Any) -> dict[str, int]:
    value = closed(value, ("deletes", "minutes"), "{deletes: …, minutes: …}")
    result = {}
    for key, item in value.items():
        try:
            result[key] = count(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return result


class PolicyModel(BaseModel):
    """A policy as written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    on_drift: Annotated[str, PlainValidator(word("hold", "restore", "watch", "capture"))] = ""
    on_missing: Annotated[str, PlainValidator(word("recreate", "hold", "forget"))] = ""
    on_removed: Annotated[str, PlainValidator(_on_removed)] = ""
    unattended: Annotated[tuple[str, ...], PlainValidator(_unattended)] = ()
    raise_: Annotated[dict[str, str], PlainValidator(_raise)] = Default(default_factory=dict, alias="raise")
    limits: Annotated[dict[str, int], PlainValidator(_limits)] = Default(default_factory=dict)
    confirm_within: Duration = ""


def read_policy(node: Node | None, what: str, reasons: Reasons) -> Policy:
    """A `policy:` block; an empty Policy if there is none or it is wrong."""
    if node is None or not is_map(node, what, reasons):
        return Policy()
    check_keys(node, FIELDS, what, reasons)
    read_ = read(PolicyModel, node, what, node.where, reasons)
    if read_ is None:
        return Policy()
    return Policy(
        Mode(read_.on_drift) if read_.on_drift else None,
        read_.on_missing or None,
        read_.on_removed or None,
        read_.unattended if "unattended" in read_.model_fields_set else None,
        read_.raise_,
        read_.limits,
        seconds(read_.confirm_within) if read_.confirm_within else None,
    )
