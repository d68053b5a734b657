"""A webhook: what an event from outside wakes, and the secret that proves whose it is."""

from __future__ import annotations

from .address import Kind
from .reading import FLAG, NAME_SET, NAMES, TEXT, Field, Fields, Reasons, ref
from .shape import ATOMIC, SCALAR, SET
from .table import Around, Declared, Table
from .values import filled, flag, name_set, names, secret_ref, target

FIELDS: Fields = {
    "secret": Field(
        "The name under which the home keeps the secret that calls are signed with.",
        ref("SecretRef"),
        SCALAR,
        check=secret_ref,
        needed=True,
    ),
    "events": Field("The events that it takes; all if left out.", NAME_SET, SET, check=name_set),
    "prompt": Field("What the agent is told; the event fills the harness's own placeholders.", TEXT, SCALAR,
                    check=filled),
    "deliver": Field("Where the answer goes.", ref("Target"), SCALAR, check=target, needed=True),
    "skills": Field("Skills to load, in this order.", NAMES, ATOMIC, check=names),
    "deliver_only": Field("Whether the event itself is delivered, and no agent runs.", FLAG, SCALAR, check=flag),
    "description": Field("What it is for, in a sentence.", TEXT, SCALAR, check=filled),
}  # fmt: skip


def _finish(declared: Declared, around: Around, reasons: Reasons) -> None:
    fields = declared.fields
    if "prompt" not in fields and not fields.get("deliver_only"):
        reasons.add(
            declared.node.where,
            f"{declared.what}: prompt is needed, or deliver_only: true",
            "prompt is what the agent is told when the event comes",
        )
    if fields.get("deliver_only") and fields.get("deliver") == "local":
        at = declared.node.value["deliver"].where
        reasons.add(at, f"{declared.what} deliver: deliver_only reaches nobody with local", "name a channel")


TABLE = Table(Kind.WEBHOOK, "Webhook", "Webhooks, by their names in the harness.", FIELDS, finish=_finish)
