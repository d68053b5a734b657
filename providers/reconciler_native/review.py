"""What carrying out a row would do to the world, for the gate: facts, never words in a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.action import CLEAR, WRITING_FIELDS, Action, Fact, Row
from reconciler.observe import Observation, Observed, Unknown
from reconciler_specs.address import Kind
from reconciler_specs.shape import Json

from . import canon, models, ops_config, ops_files
from .folder import DEFAULT
from .pasted import is_pasted

SECURITY = (
    "approvals", "security", "command_allowlist", "hooks", "hooks_auto_accept", "unauthorized_dm_behavior", "terminal",
    "plugins", "mcp_servers", "toolsets", "platform_toolsets", "quick_commands", "privacy", "secrets", "gateway",
    "platforms", "worker", "cron.provider", "agent.disabled_toolsets", "browser", "code_execution", "computer_use",
    "dashboard", "discord", "matrix", "mattermost", "mcp", "network", "slack", "telegram", "whatsapp",
    "skills.external_dirs",
)  # fmt: skip
"""What decides who may do what, or runs code. Looser cannot be told from tighter, so a change counts as looser."""

_QUIET = frozenset({"name", "paused", "metadata", "id"})
_ADDRESSES = ("url", "endpoint", "host", "proxy")


def facts(action: Action, desired: Mapping[str, Json], observation: Observation) -> frozenset[Fact]:
    """What `action` would do."""
    address = action.address
    seen = observation.at(address.profile, address.kind, action.id or address.key)
    about = seen.about if isinstance(seen, Observed) and address.kind is Kind.JOB else {}
    running = frozenset({Fact.RUNNING}) if about.get("running") else frozenset()
    if action.row is Row.DELETE:
        permanent = address.kind is Kind.PROFILE and address.profile in ("", DEFAULT)
        return running | (frozenset({Fact.PERMANENT}) if permanent else frozenset())
    if action.row not in (Row.CREATE, Row.MISSING, Row.UPDATE):
        return frozenset()
    update = action.row is Row.UPDATE
    changed = {c.field for c in action.changes if not update or c.row in WRITING_FIELDS}
    changed = changed or (set() if update else set(desired))
    observed = seen.fields if isinstance(seen, Observed) else {}
    match address.kind:
        case Kind.JOB:
            return running | _job(changed, {**observed, **desired}, action)
        case Kind.INFERENCE:
            return _inference(changed, desired, observed)
        case Kind.SETTING:
            return _setting(address.key, desired.get("value")) if changed else frozenset()
        case Kind.FILE:
            mode = str(desired.get("mode") or observed.get("mode") or "0")
            code = int(mode, 8) & 0o111 if mode.isdigit() else 0
            runs = bool(code) or address.key.split("/")[0] in ops_files.CODE
            return frozenset({Fact.RUNS_CODE}) if changed and runs else frozenset()
    return frozenset()


def _job(changed: set[str], effective: Mapping[str, Json | Unknown], action: Action) -> frozenset[Fact]:
    wakes = any(c.field == "paused" and c.writes and c.write in (False, CLEAR) for c in action.changes)
    if changed <= _QUIET and not wakes:
        return frozenset()
    found = set()
    monitor = effective.get("monitor")
    if effective.get("run") or effective.get("before") or (isinstance(monitor, dict) and "script" in monitor):
        found.add(Fact.RUNS_CODE)
    if isinstance(monitor, dict) and "url" in monitor:
        found.add(Fact.NEW_ADDRESS)
    if any(effective.get(name, "local") != "local" for name in ("deliver", "failure_deliver")):
        found.add(Fact.REACHES_PEOPLE)
    return frozenset(found)


def _inference(
    changed: set[str], desired: Mapping[str, Json], observed: Mapping[str, Json | Unknown]
) -> frozenset[Fact]:
    where, keys = _addresses({name: desired[name] for name in changed & desired.keys()})
    known_where, known_keys = _addresses({n: v for n, v in observed.items() if not isinstance(v, Unknown)})
    found = {Fact.NEW_ADDRESS} if where - known_where else set()
    return frozenset(found | ({Fact.NEW_CREDENTIAL} if keys - known_keys else set()))


def _addresses(fields: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Base URLs and providers, and the names of keys."""
    where, keys = set(), set()
    for model in canon.all_models(fields):
        # A provider that is new here gets prompts and a key too, even where nothing is spelled out.
        where |= {f"provider:{model.get('provider')}"} | ({str(model["base_url"])} if model.get("base_url") else set())
        keys |= {models.key_name(model)} - {""}
    return where, keys


def _setting(key: str, value: Json) -> frozenset[Fact]:
    found = set()
    try:
        path = ops_config.split(key)
    except ValueError:
        return frozenset({Fact.LOOSENS_SECURITY})  # it is refused anyway
    dotted = ".".join(path)
    if dotted.isupper() or any(dotted == part or dotted.startswith(f"{part}.") for part in SECURITY):
        found.add(Fact.LOOSENS_SECURITY)
    if _in_clear(value, path[-1]):
        found.add(Fact.SECRET_IN_CLEAR)
    if path[-1].lower().endswith(_ADDRESSES):
        found.add(Fact.NEW_ADDRESS)
    return frozenset(found)


def _in_clear(value: Json, under: str) -> bool:
    if isinstance(value, dict):
        return any(_in_clear(item, str(key)) for key, item in value.items())
    if isinstance(value, list):
        return any(_in_clear(item, under) for item in value)
    return is_pasted(under, value)
