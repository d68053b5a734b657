"""Policy: what plan does about drift, missing and removed things, and what may run without a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator
from pydantic import Field as Default

from .address import Kind
from .document import Node, shown
from .reading import Field, Fields, Reasons, Schema, check_keys, is_map, read
from .resource import Mode
from .values import Duration, Refusal, closed, count, described, duration, filled, names, seconds, word
from .window import SCHEMA as WINDOWS
from .window import Window, read_windows

VERBS = ("create", "update", "set", "claim", "unset", "restore", "recreate", "adopt", "provision", "restart")
# Never without a terminal, so that they can only be raised: what is deleted, and what others hang on.
ATTENDED = {"delete": "deletes need --reviewed and a plan", "follow": "it changes what this setup does not own"}
# Verbs of a whole home, and of nothing else.
OF_HOMES = frozenset({"adopt", "provision", "restart"})
# Kinds of which nothing is written without a terminal (laws, “Gate and consent”).
NEVER = frozenset({Kind.SECRET.value})
GRACE = 7 * 24 * 3600
"""Seconds that a thing is paused before it may be deleted, where `on_removed: pause` says nothing else."""
KINDS: Mapping[str, str] = {**{k.value: k.value for k in Kind}, "profiles": "profile", "homes": "home"}

_VERB_KIND = r"^[a-z]+ [a-z_]+$"
_DURATION = "^[0-9]+[mhd]$"
_PER_KIND: Schema = {
    "oneOf": [
        {"type": "integer", "minimum": 1},
        {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}, "minProperties": 1},
    ]
}
FIELDS: Fields = {
    "on_drift": Field(
        "What to do when a home's value moved away.",
        {"enum": ["hold", "restore", "watch", "capture"], "default": "hold"},
    ),
    "on_missing": Field(
        "What to do when a thing of ours is gone.", {"enum": ["recreate", "hold", "forget"], "default": "recreate"}
    ),
    "on_removed": Field(
        "What to do with a thing that left the setup: delete it after a review, or pause it and delete it (after a "
        "review) once it was paused for 7 days, or as long as {pause: 30d} says.",
        {
            "oneOf": [
                {"enum": ["delete", "pause"]},
                {
                    "type": "object",
                    "properties": {"pause": {"type": "string", "pattern": _DURATION}},
                    "required": ["pause"],
                    "additionalProperties": False,
                },
            ],
            "default": "delete",
        },
    ),
    "unattended": Field(
        "What may be applied without a terminal, as `verb kind`: restore jobs.",
        {"type": "array", "items": {"type": "string", "pattern": _VERB_KIND}},
    ),
    "raise": Field(
        "What needs more consent than the rules ask, as `verb kind`: confirm or refuse.",
        {"type": "object", "additionalProperties": {"enum": ["confirm", "refuse"]}},
    ),
    "limits": Field(
        "The most deletes and the most changes of one home in a run, of all kinds or per kind ({jobs: 3}), and the "
        "minutes it may take.",
        {
            "type": "object",
            "properties": {
                "deletes": _PER_KIND,
                "changes": _PER_KIND,
                "minutes": {"type": "integer", "minimum": 1},
            },
            "additionalProperties": False,
        },
    ),
    "windows": Field(
        "When homes may be written (allow) and when not (deny, which wins), each by the clock of a zone.", WINDOWS
    ),
    "confirm_within": Field(
        "How long a plan file and an approval stay valid: 4h.", {"type": "string", "pattern": _DURATION}
    ),
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Only what the author set; the others are None or empty. See `over` and the properties' defaults.

    `unattended` and `raise_` hold `verb kind`, the kind as its word in an address; `limits` is `deletes`, `changes`,
    `minutes`, or `deletes KIND` and `changes KIND`. `confirm_within` and `grace`, how long what left the setup is
    paused before it may be deleted (on_removed: pause), are in seconds.
    """

    on_drift: Mode | None = None
    on_missing: str | None = None
    on_removed: str | None = None
    unattended: tuple[str, ...] | None = None
    raise_: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    confirm_within: int | None = None
    grace: int | None = None
    windows: tuple[Window, ...] = ()

    def over(self, below: Policy) -> Policy:
        """This policy on another one: per key, what is set here wins; windows add up, so that a freeze of all homes
        is one of each."""
        return Policy(
            self.on_drift or below.on_drift,
            self.on_missing or below.on_missing,
            self.on_removed or below.on_removed,
            below.unattended if self.unattended is None else self.unattended,
            {**below.raise_, **self.raise_},
            {**below.limits, **self.limits},
            below.confirm_within if self.confirm_within is None else self.confirm_within,
            self.grace if self.on_removed else below.grace,
            tuple(dict.fromkeys((*below.windows, *self.windows))),
        )


DEFAULTS = Policy(Mode.HOLD, "recreate", "delete", ())


def _verb_kind(value: Any, *, unattended: bool) -> str:
    parts = filled(value).split()
    verbs = VERBS if unattended else (*VERBS, *ATTENDED)
    if len(parts) != 2 or parts[0] not in (*VERBS, *ATTENDED) or parts[1] not in KINDS:
        raise Refusal(
            f"`verb kind` is expected, got {described(value)}",
            f"a verb ({', '.join(verbs)}) and a kind ({', '.join(KINDS)})",
        )
    verb, kind = parts[0], KINDS[parts[1]]
    if verb not in verbs:
        raise Refusal(f"{shown(verb)} is never unattended", ATTENDED[verb])
    if unattended and kind in NEVER:
        raise Refusal(f"{shown(kind)} are never unattended", "a change of a secret needs a person, or a reviewed plan")
    if (kind == Kind.HOME.value) is not (verb in OF_HOMES):
        raise Refusal(
            f"{shown(f'{verb} {kind}')} does not exist",
            f"of a home: {', '.join(sorted(OF_HOMES))}" if kind == Kind.HOME.value else f"write {verb} home",
        )
    return f"{verb} {kind}"


def _unattended(value: Any) -> tuple[str, ...]:
    result = []
    for i, item in enumerate(names(value)):
        try:
            result.append(_verb_kind(item, unattended=True))
        except Refusal as refusal:
            raise refusal.under(i) from refusal
    return tuple(result)


def _raise(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Refusal("a map from `verb kind` to confirm or refuse is expected", 'write {"update jobs": confirm}')
    result = {}
    for key, item in value.items():
        try:
            result[_verb_kind(key, unattended=False)] = word("confirm", "refuse")(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return result


def _on_removed(value: Any) -> tuple[str, int | None]:
    """(what is done, the grace period in seconds)."""
    if isinstance(value, dict):
        value = closed(value, ("pause",), "delete, pause or {pause: 7d}")
        if not value:
            raise Refusal("delete, pause or {pause: 7d} is expected, got an empty map")
        try:
            return "pause", seconds(duration(value["pause"]))
        except Refusal as refusal:
            raise refusal.under("pause") from refusal
    done = str(word("delete", "pause")(value))
    return done, GRACE if done == "pause" else None


def _limits(value: Any) -> dict[str, int]:
    value = closed(value, ("deletes", "changes", "minutes"), "{deletes: …, changes: …, minutes: …}")
    result = {}
    for key, item in value.items():
        per_kind = isinstance(item, dict) and key != "minutes"
        for kind, number in item.items() if per_kind else (("", item),):
            try:
                if kind and kind not in KINDS:
                    raise Refusal(f"{shown(kind)} is no kind", f"one of {', '.join(KINDS)}", (kind,), at_key=True)
                most = count(number) if not kind else _count(kind, number)
            except Refusal as refusal:
                raise refusal.under(key) from refusal
            result[f"{key} {KINDS[kind]}" if kind else key] = most
    return result


def _count(kind: str, number: Any) -> int:
    try:
        return count(number)
    except Refusal as refusal:
        raise refusal.under(kind) from refusal


class PolicyModel(BaseModel):
    """A policy as written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    on_drift: Annotated[str, PlainValidator(word("hold", "restore", "watch", "capture"))] = ""
    on_missing: Annotated[str, PlainValidator(word("recreate", "hold", "forget"))] = ""
    on_removed: Annotated[tuple[str, int | None], PlainValidator(_on_removed)] = ("", None)
    unattended: Annotated[tuple[str, ...], PlainValidator(_unattended)] = ()
    raise_: Annotated[dict[str, str], PlainValidator(_raise)] = Default(default_factory=dict, alias="raise")
    limits: Annotated[dict[str, int], PlainValidator(_limits)] = Default(default_factory=dict)
    windows: Annotated[tuple[Window, ...], PlainValidator(read_windows(KINDS))] = ()
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
        read_.on_removed[0] or None,
        read_.unattended if "unattended" in read_.model_fields_set else None,
        read_.raise_,
        read_.limits,
        seconds(read_.confirm_within) if read_.confirm_within else None,
        read_.on_removed[1],
        read_.windows,
    )
