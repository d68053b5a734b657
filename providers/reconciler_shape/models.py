"""Models: the setup's `{provider, model, base_url?, key?, api_mode?}`, and the entries of config.yaml."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .hiding import Hider, is_hidden

KEYS = ("provider", "model", "base_url", "key", "api_mode")
INFERENCE = ("model", "fallback_providers", "fallback_model", "auxiliary", "provider", "base_url", "api_base")
"""Top-level keys of config.yaml that stand for the models: the kind `inference`."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OLDER = ("model", "name", "api_base", "key_env", "api_key_env")
Model = Mapping[str, Any]


def canonical(model: Model) -> dict[str, Any]:
    """One form for what means the same: known keys in order, no empty ones, no slash at an address's end."""
    found = {key: model[key] for key in KEYS if model.get(key) not in (None, "", {})}
    if isinstance(found.get("base_url"), str):
        found["base_url"] = found["base_url"].rstrip("/")
    return found


def key_name(model: Model) -> str:
    """The name of the secret that a model declares, "" if it declares none."""
    key = model.get("key")
    return str(key["secret"]) if isinstance(key, dict) and isinstance(key.get("secret"), str) else ""


def from_entry(entry: Model, hider: Hider) -> dict[str, Any] | None:
    """A `model`, `fallback_providers[]` or `auxiliary.<task>` entry of config.yaml as a model, without the secrets that
    are written there in the clear. None iff the entry names no model at all."""
    name = next((entry[word] for word in ("default", "model", "name") if entry.get(word)), None)
    if not name and not entry.get("provider"):
        return None
    found: dict[str, Any] = {"provider": str(entry.get("provider") or "auto").strip(), "model": str(name or "").strip()}
    for key, words in (("base_url", ("base_url", "api_base")), ("api_mode", ("api_mode",))):
        value = next((entry[word] for word in words if entry.get(word)), None)
        if value:
            found[key] = hider.value(str(value).strip())
    written = entry.get("api_key")
    if isinstance(written, str) and written.strip():
        match = _VARIABLE.fullmatch(written.strip())
        found["key"] = {"secret": match[1]} if match else hider.value(written, "api_key")
    elif entry.get("key_env") or entry.get("api_key_env"):
        found["key"] = {"secret": str(entry.get("key_env") or entry.get("api_key_env"))}
    return canonical(found)


def entry_of(model: Model, name: str) -> dict[str, Any]:
    """A model as a config entry; `name` is the entry's word for the model (`default` in `model:`)."""
    found = {"provider": model.get("provider"), name: model.get("model", "")}
    if model.get("base_url"):
        found["base_url"] = model["base_url"]
    if key_name(model):
        found["api_key"] = f"${{{key_name(model)}}}"
    if model.get("api_mode"):
        found["api_mode"] = model["api_mode"]
    return found


def left_over(entry: Model) -> list[str]:
    """The words of an older model that must not stand beside this entry."""
    return sorted({"provider", "default", "base_url", "api_key", "api_mode", *_OLDER} - entry.keys())


def pinned(record: Mapping[str, Any]) -> Any:
    """A job record's own model; None if it has none, a mark for half a pin, for which the setup has no words."""
    found = {key: record[key] for key in ("provider", "model", "base_url") if record.get(key)}
    if not found:
        return None
    return found if "provider" in found and "model" in found else {"$native": found}


def each(fields: Mapping[str, Any]) -> Iterator[tuple[str, Model]]:
    """Every model that inference's fields hold, behind the field's name; what is no mapping is passed over."""
    chain, tasks = fields.get("fallbacks"), fields.get("auxiliary")
    found = [("default", fields.get("default"))]
    found += [("fallbacks", item) for item in chain] if isinstance(chain, list) else []
    found += [("auxiliary", item) for item in tasks.values()] if isinstance(tasks, dict) else []
    yield from ((name, model) for name, model in found if isinstance(model, Mapping))


def canon(fields: Mapping[str, Any], canonical: Callable[[Model], dict[str, Any]] = canonical) -> dict[str, Any]:
    """Inference's declared fields with every model in its canonical form."""
    forms: dict[str, Callable[[Any], Any]] = {
        "default": canonical,
        "fallbacks": lambda chain: [canonical(item) for item in chain],
        "auxiliary": lambda tasks: {task: canonical(item) for task, item in tasks.items()},
    }
    return {name: forms[name](value) for name, value in fields.items() if name in forms}


def keys(fields: Mapping[str, Any], usual: Callable[[str], str]) -> dict[str, str]:
    """What each provider's key is, by “key of PROVIDER”; `usual` names the one that is taken where none is declared."""
    found: dict[str, str] = {}
    for _, model in each(fields):
        provider = str(model.get("provider", ""))
        found.setdefault(f"key of {provider}", key_name(model) or usual(provider) or "none is named")
    return found


def addresses(fields: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Where prompts go, by inference's fields: base URLs and providers; and the names of keys."""
    where, keys = set(), set()
    for _, model in each(fields):
        # A provider that is new here gets prompts and a key too, even where nothing is spelled out.
        where |= {f"provider:{model.get('provider')}"} | ({str(model["base_url"])} if model.get("base_url") else set())
        keys |= {key_name(model)} - {""}
    return where, keys


def express(fields: Mapping[str, Any]) -> dict[str, Any]:
    """As a setup's `inference:`, with each distinct model under a name of its own; nothing hidden."""
    named: dict[str, Any] = {}

    def name_of(model: Model) -> str:
        for known, definition in named.items():
            if definition == model:
                return known
        letters = (c if c.isalnum() else "-" for c in str(model["model"]).rpartition("/")[2].lower())
        base = name = ("".join(letters).strip("-") or "model")[:40]
        count = 2
        while name in named:
            name, count = f"{base}-{count}", count + 1
        named[name] = dict(model)
        return name

    def usable(model: Any) -> bool:
        return isinstance(model, Mapping) and bool(model.get("model")) and not is_hidden(dict(model))

    out: dict[str, Any] = {}
    default, fallbacks, auxiliary = (fields.get(name) for name in ("default", "fallbacks", "auxiliary"))
    if usable(default):
        out["default"] = name_of(default)  # type: ignore[arg-type]  # `usable` says that it is a mapping
    if isinstance(fallbacks, list) and fallbacks and all(map(usable, fallbacks)):
        out["fallbacks"] = [name_of(item) for item in fallbacks]
    if isinstance(auxiliary, dict):
        tasks = {task: name_of(model) for task, model in auxiliary.items() if usable(model)}
        out |= {"auxiliary": tasks} if tasks else {}
    return {"models": named, **out} if named else {}
