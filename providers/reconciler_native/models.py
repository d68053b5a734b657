"""Models: the setup's `{provider, model, base_url?, key?, api_mode?}` and the entries of config.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

KEYS = ("provider", "model", "base_url", "key", "api_mode")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OLDER = ("model", "name", "api_base", "key_env", "api_key_env")


def canonical(model: Mapping[str, Any]) -> dict[str, Any]:
    """One form for what means the same: known keys in order, no empty ones, no slash at an address's end."""
    found = {key: model[key] for key in KEYS if model.get(key) not in (None, "", {})}
    if isinstance(found.get("base_url"), str):
        found["base_url"] = found["base_url"].rstrip("/")
    return found


def key_name(model: Mapping[str, Any]) -> str:
    """The name of the secret that a model declares, "" if it declares none."""
    key = model.get("key")
    return str(key["secret"]) if isinstance(key, dict) and isinstance(key.get("secret"), str) else ""


def from_entry(entry: Any, hidden: Any = None) -> dict[str, Any] | None:
    """An entry of config.yaml as a model; `hidden` stands for a key that is written there in the clear.

    None iff the entry names no model at all.
    """
    if isinstance(entry, str) and entry:
        entry = {"default": entry}
    if not isinstance(entry, dict):
        return None
    name = next((entry[k] for k in ("default", "model", "name") if entry.get(k)), None)
    if not name and not entry.get("provider"):
        return None
    found: dict[str, Any] = {"provider": str(entry.get("provider") or "auto").strip(), "model": str(name or "").strip()}
    for key, words in (("base_url", ("base_url", "api_base")), ("api_mode", ("api_mode",))):
        value = next((entry[w] for w in words if entry.get(w)), None)
        if value:
            found[key] = str(value).strip()
    written = entry.get("api_key")
    if isinstance(written, str) and written.strip():
        match = _VARIABLE.fullmatch(written.strip())
        found["key"] = {"secret": match[1]} if match else hidden
    elif entry.get("key_env") or entry.get("api_key_env"):
        found["key"] = {"secret": str(entry.get("key_env") or entry.get("api_key_env"))}
    return canonical(found)


def entry_of(model: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A model as a config entry; `name` is the entry's word for the model (`default` in `model:`)."""
    found = {"provider": model.get("provider"), name: model.get("model", "")}
    if model.get("base_url"):
        found["base_url"] = model["base_url"]
    if key_name(model):
        found["api_key"] = f"${{{key_name(model)}}}"
    if model.get("api_mode"):
        found["api_mode"] = model["api_mode"]
    return found


def left_over(entry: Mapping[str, Any]) -> list[str]:
    """The words of an older model that must not stand beside this one."""
    return sorted({"provider", "default", "base_url", "api_key", "api_mode", *_OLDER} - entry.keys())
