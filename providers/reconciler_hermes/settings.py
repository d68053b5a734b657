"""Settings: single values of config.yaml by their dotted path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.observe import Observed, Things, Unknown
from reconciler_shape import dotted, reach
from reconciler_shape.hiding import is_hidden
from reconciler_shape.plain import digest, is_native
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import home


def read(profile: home.Profile, wanted: Sequence[str], everything: bool) -> Things | Unknown:
    """The wanted settings that are there; with `everything`, all that no other kind stands for."""
    if profile.config.unknown:
        return profile.config.unknown
    things = {}
    for key, path, value in dotted.chosen(profile.config.raw, wanted, everything, reach.elsewhere):
        things[key] = Observed(
            Kind.SETTING,
            profile.name,
            key,
            {"value": profile.hider.value(value, path[-1], forced=dotted.under_secret(path))},
            name=key,
            fingerprint=digest(value, profile.hider.key),
        )
    return things


def refusal(key: str, value: Json, raw: Mapping[str, Json], pinned: Sequence[str]) -> str:
    """Why `key` cannot be a setting with that value here, "" if it can."""
    try:
        path = dotted.split(key)
    except dotted.BadKey as error:
        return str(error)
    why = dotted.owned(path, value)
    if why:
        return why
    name = ".".join(path)
    for pin in pinned:
        if name == pin or name.startswith(f"{pin}.") or pin.startswith(f"{name}."):
            return f"{pin} is pinned by this machine's administrator; Hermes ignores it in config.yaml"
    return dotted.through_a_value(path, raw)


def express(thing: Observed) -> Json:
    """The setting's value, None where it holds something that a setup must not, or cannot, say."""
    value = thing.get("value")
    if isinstance(value, Unknown) or is_hidden(value) or is_native(value):
        return None
    return dotted.named(value, dotted.last(thing.id))
