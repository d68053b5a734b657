"""Inference of a profile: named models, the default, fallbacks, models per auxiliary task and for unattended runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator
from pydantic import Field as Default

from . import profile
from .address import Address
from .document import Node, shown
from .errors import Where
from .reading import (
    NAMES,
    TEXT,
    THING_KEYS,
    Field,
    Fields,
    Reasons,
    check_keys,
    did_you_mean,
    is_map,
    origins,
    read,
    read_marks,
    ref,
    resource,
)
from .resource import Mode, Resource
from .shape import ATOMIC, MAP_OF_SCALARS, SCALAR, Class, Json, Shape
from .values import NAME, Filled, Names, Refusal, filled, model, word

FIELDS: Fields = {
    "models": Field(
        "The models by your own names for them.",
        {"type": "object", "additionalProperties": ref("Model"), "minProperties": 1},
        Shape(Class.MAP, of=Shape(Class.MAP)),
        field=False,
    ),
    "default": Field("The name of the model that the profile uses.", TEXT, SCALAR),
    "fallbacks": Field("Names of models to try in this order when the default fails.", NAMES, ATOMIC),
    "auxiliary": Field(
        "The name of a model per auxiliary task of the harness.",
        {"type": "object", "additionalProperties": TEXT},
        MAP_OF_SCALARS,
    ),
    "unattended": Field("The name of the model for runs that nobody watches.", TEXT, SCALAR),
    "rebase": Field(
        "Which jobs follow when the default changes: ours, or all of the profile.",
        {"enum": ["ours", "all"], "default": "ours"},
        field=False,
    ),
}
SHAPES = {name: f.shape for name, f in FIELDS.items() if f.field}
MODEL_FIELDS: Fields = {
    "provider": Field("The provider, as the harness names it.", TEXT),
    "model": Field("The model's id at the provider.", TEXT),
    "base_url": Field("The address, where it is not the provider's own.", TEXT),
    "key": Field("The name under which the home keeps the API key.", ref("SecretRef")),
    "api_mode": Field("How to talk to the address, as the harness names it.", TEXT),
}


def _models(value: Any) -> dict[str, dict[str, Json]]:
    if not isinstance(value, dict) or not value:
        raise Refusal("a map of models by name is expected", "write daily: {provider: …, model: …}")
    result = {}
    for key, item in value.items():
        if not NAME.match(key):
            raise Refusal(f"{shown(key)} is no name (a-z, 0-9, _, . and -)", path=(key,))
        try:
            result[key] = model(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return result


def _auxiliary(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Refusal("a map from task to model name is expected")
    result = {}
    for key, item in value.items():
        try:
            result[key] = filled(item)
        except Refusal as refusal:
            raise refusal.under(key) from refusal
    return result


class Inference(BaseModel):
    """A profile's inference as declared; the values but `models` and `rebase` are names of models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Annotated[dict[str, dict[str, Any]], PlainValidator(_models)]
    default: Filled
    fallbacks: Names = Default(default_factory=list)
    auxiliary: Annotated[dict[str, str], PlainValidator(_auxiliary)] = Default(default_factory=dict)
    unattended: Filled = ""
    rebase: Annotated[str, PlainValidator(word("ours", "all"))] = "ours"


@dataclass(frozen=True, slots=True)
class Models:
    """The models that a profile declares, for its jobs to name."""

    by_name: Mapping[str, Json]

    def resolve(self, name: str) -> Json:
        """The definition. Raises Refusal if there is none of that name."""
        if name in self.by_name:
            return self.by_name[name]
        hint = (
            did_you_mean(name, self.by_name)
            if self.by_name
            else "declare it in inference.models, or write {provider: …, model: …}"
        )
        raise Refusal(f"no model {shown(name)} in the profile's inference.models", hint)


def read_inference(
    node: Node, address: Address, where: Where, mode: Mode, reasons: Reasons
) -> tuple[Resource | None, Models]:
    """The inference Resource with all names resolved, and the models for the profile's jobs."""
    what = str(address)
    if not is_map(node, what, reasons):
        return None, Models({})
    check_keys(node, (*FIELDS, *THING_KEYS), what, reasons)
    marks = read_marks(node, SHAPES, what, reasons)
    declared = read(Inference, node, what, where, reasons)
    if declared is None:
        # Jobs that name a model should not be blamed for what is wrong here.
        given = node.get("models")
        return None, Models(dict.fromkeys(given.value, None) if given is not None and given.kind == "map" else {})
    models = Models(declared.models)

    def resolve(name: str, *path: str | int) -> Json:
        try:
            return models.resolve(name)
        except Refusal as refusal:
            at = node.descend(path)
            reasons.add(at.where, f"{what} {'.'.join(map(str, path))}: {refusal.message}", refusal.hint)
            return None

    given_fields = declared.model_fields_set
    fields: dict[str, Json] = {"default": resolve(declared.default, "default")}
    if "fallbacks" in given_fields:
        fields["fallbacks"] = [resolve(n, "fallbacks", i) for i, n in enumerate(declared.fallbacks)]
    if "auxiliary" in given_fields:
        fields["auxiliary"] = {task: resolve(n, "auxiliary", task) for task, n in declared.auxiliary.items()}
    if declared.unattended:
        fields["unattended"] = resolve(declared.unattended, "unattended")
    options = {"rebase": declared.rebase} if "rebase" in given_fields else {}
    needed = profile.needs(address.home, address.profile)
    made = resource(address, fields, SHAPES, marks, mode, origins(node, where), needed, options)
    return made, models
