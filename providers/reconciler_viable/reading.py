"""One read of a project: its settings, and what kits the platform offers. Which kits it has, nothing tells."""

from __future__ import annotations

import secrets

from reconciler.observe import Observation, Observed, Things
from reconciler.provider import HomeRef
from reconciler_shape.hiding import Hider
from reconciler_shape.plain import digest
from reconciler_specs.address import Kind
from reconciler_specs.remote import SETTINGS
from reconciler_specs.shape import Json

from . import shapes
from .credential import token
from .wire import Api

_PROCESS_KEY = secrets.token_bytes(32)


def hider(home: HomeRef) -> Hider:
    """With the home's own key where the engine has one, and the credential as a value to hide."""
    key = home.options.get("$key")
    return Hider(bytes.fromhex(str(key)) if key else _PROCESS_KEY, [token(home.options)])


def observe(home: HomeRef) -> Observation:
    """Raises ProviderError when the project cannot be looked at: it is never taken for gone."""
    api, hidden = Api(home), hider(home)
    offer, settings = api.offer(), api.settings()
    kits = {hidden.text(kit.id): [hidden.text(item.key) for item in kit.types] for kit in offer.kits}
    facts: dict[str, Json] = {"offer": kits}
    return Observation(things={("", Kind.SETTING): _settings(settings, hidden), ("", Kind.KIT): {}}, facts=facts)


def _settings(found: shapes.Settings, hidden: Hider) -> Things:
    values = {name: value for name in SETTINGS if (value := getattr(found, name))}
    return {
        name: Observed(
            Kind.SETTING,
            "",
            name,
            {"value": hidden.value(value, name)},
            name=name,
            fingerprint=fingerprint(value, hidden),
        )
        for name, value in values.items()
    }


def fingerprint(value: str | None, hidden: Hider) -> str:
    """Of a setting's value; "" of one that is not there."""
    return digest(value, hidden.key) if value else ""
