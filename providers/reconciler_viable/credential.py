"""The one credential: an access token in the environment, looked up for every call, and never kept (S4-01, S4-02)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from reconciler.errors import ProviderError
from reconciler_specs.shape import Json

PREFIX = "vib_"
# What may stand in a header; the rest of a token's form is the platform's.
_TOKEN = re.compile(r"vib_[\x21-\x7e]+\Z")


def name(options: Mapping[str, Json]) -> str:
    """The environment variable that a home's `key` names. Raises ProviderError for a home that says none."""
    key = options.get("key")
    if not isinstance(key, dict) or "secret" not in key:
        raise ProviderError("a project on the platform is named in a setup first: url, key, project")
    return str(key["secret"])


def token(options: Mapping[str, Json]) -> str:
    """The access token. Raises ProviderError, before anything is sent, where it is none."""
    variable = name(options)
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ProviderError(f"not signed in: {variable} is not set in the environment", hint=f"export {variable}=…")
    if not _TOKEN.match(value):
        raise ProviderError(f"{variable} is no access token of the platform: those begin with {PREFIX}")
    return value
