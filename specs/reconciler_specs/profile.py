"""A profile: one agent of a home. Its own fields are few; what belongs to it are things of their own."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainValidator
from pydantic import Field as Default

from . import worker as work
from .address import KIND_WORDS, Address, Kind
from .document import Node
from .errors import Where
from .reading import TEXT, Field, Fields, Reasons, origins, read, read_marks, resource
from .resource import Mode, Resource
from .shape import FREE, Json
from .values import Filled

FIELDS: Fields = {
    "description": Field("What this agent is for, in a sentence.", TEXT),
    "worker": Field(
        "The program that does its work: a harness, or {harness, model, preset, cwd, env, permission}.",
        work.SCHEMA,
        FREE,
    ),
}
SHAPES = {name: f.shape for name, f in FIELDS.items()}
# Words that an address uses between profile and key: no profile may be named so.
RESERVED = frozenset(kind.value for kind in KIND_WORDS)


class Profile(BaseModel):
    """A profile's own fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: Filled = ""
    worker: Annotated[dict[str, Json], PlainValidator(work.worker)] = Default(default_factory=dict)


def read_profile(node: Node, address: Address, where: Where, mode: Mode, reasons: Reasons) -> Resource | None:
    """The profile's Resource; its keys were checked by the caller, who knows what else lies in a profile."""
    what = str(address)
    profile = read(Profile, node, what, where, reasons)
    marks = read_marks(node, FIELDS, what, reasons)
    if profile is None:
        return None
    fields = {name: getattr(profile, name) for name in FIELDS if name in profile.model_fields_set}
    return resource(address, fields, SHAPES, marks, mode, origins(node, where))


def needs(home: str, profile: str) -> tuple[Address, ...]:
    """What a thing of `profile` needs: the profile. Not the default one, which always exists; "" is the home itself."""
    return () if profile in ("", "default") else (Address(home, profile, Kind.PROFILE),)
