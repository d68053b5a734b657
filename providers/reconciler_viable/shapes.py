"""The connector's answers, closed and strict: a key too many or too few is no answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import Odd

_Text = Annotated[str, Field(min_length=1)]


class Closed(BaseModel):
    """Exactly these keys, each of exactly its type."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Container(Closed):
    key: _Text
    label: str


class Type(Closed):
    key: _Text
    label: str
    flow: str


class Status(Closed):
    key: _Text
    label: str
    intrinsic: Literal["planned", "in-progress", "closed"]


class Flow(Closed):
    key: _Text
    label: str
    statuses: list[Status]


class Kit(Closed):
    """A kit as the platform offers it."""

    id: _Text
    kind: str
    title: str
    purpose: str
    container: Container
    types: list[Type]
    flows: list[Flow]


class Offer(Closed):
    """What can be applied; nothing tells what has been."""

    kits: list[Kit]


class Applied(Closed):
    """What an application of a kit wrote, what it left out because it was there, and what a person should hear."""

    applied: list[str]
    skipped: list[str]
    warnings: list[str]


class Settings(Closed):
    """A project's settings: an empty Google tag is none."""

    copyright: str | None = None
    organizationName: str | None = None
    termsUrl: str | None = None
    privacyUrl: str | None = None
    googleTag: str | None = None


class Failure(Closed):
    """A refusal: its class, and a code with what belongs to it."""

    type: str
    message: str


M = TypeVar("M", bound=Closed)


def read(model: type[M], value: Any, what: str) -> M:
    """Raises Odd, naming the first part that is wrong; what stands there is not repeated."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise Odd(f"the answer to {what} is not of the connector's form ({where}: {first['msg']})") from error


def failure(value: Any) -> Failure | None:
    """The refusal that an answer is, None if it is none."""
    try:
        return Failure.model_validate(value)
    except ValidationError:
        return None
