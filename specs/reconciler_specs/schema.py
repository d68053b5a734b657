"""The language as JSON Schema (draft 2020-12), for editors; made from the kinds' field tables, never by hand.

`python -m reconciler_specs.schema` prints it; a test compares it with schema/setup.v1.schema.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from . import file, home, inference, job, load, notify, policy, profile, secret, state
from .reading import NAMES, TEXT, Fields, Schema, marks_schema, ref
from .table import Table
from .tables import TABLES

PATH = Path(__file__).parent / "schema" / "setup.v1.schema.json"
_NAME = "^[a-z0-9][a-z0-9_.-]{0,62}$"
_SECRET = "^[A-Za-z_][A-Za-z0-9_]*$"
_ANY = "^[^#]+$"
_PROFILE = "^[a-z0-9][a-z0-9_-]{0,63}$"
_PARAMETER: Schema = {"type": "string", "pattern": r"\$\([a-z0-9][a-z0-9_.-]*\)"}

# A home is at a path, or is a project on a platform.
_SOMEWHERE: Schema = {"anyOf": [{"required": ["path"]}, {"required": ["project"]}]}


def _closed(properties: Mapping[str, Schema], required: Collection[str] = (), **more: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}
    if required:
        schema["required"] = sorted(required)
    return schema


def _loose(schema: Schema) -> Schema:
    """The same, or a parameter, or null, which takes away what was inherited."""
    if set(schema) == {"type"} and schema["type"] == "string":
        return {"type": ["string", "null"]}
    return {"anyOf": [schema, _PARAMETER, {"type": "null"}]}


def _fields(fields: Fields, skip: Collection[str] = ()) -> dict[str, Schema]:
    return {name: {"description": f.doc, **_loose(f.schema)} for name, f in fields.items() if name not in skip}


def _by_name(of: Schema, pattern: str = _NAME) -> Schema:
    return {
        "type": ["object", "null"],
        "propertyNames": {"pattern": pattern},
        "additionalProperties": {"anyOf": [of, {"type": "null"}]},
    }


def _thing(fields: Fields, required: Collection[str] = (), **more: Any) -> Schema:
    names = [name for name, f in fields.items() if f.field]
    return _closed({**_fields(fields), **marks_schema(names)}, required, **more)


def _one_of(*keys: str) -> Schema:
    """Exactly one of `keys` is given."""
    return {"oneOf": [{"required": [key]} for key in keys]}


def _profile(suffix: str) -> Schema:
    parts = {
        "inference": ref(f"Inference{suffix}"),
        "jobs": _by_name(ref(f"Job{suffix}")),
        "files": {"type": "object", "additionalProperties": {"anyOf": [ref(f"File{suffix}"), {"type": "null"}]}},
    }
    own = _fields(home.PROFILE_FIELDS)
    parts |= {kind.value: _by_name(ref(f"{table.thing}{suffix}"), _ANY) for kind, table in TABLES.items()}
    for key, schema in parts.items():
        own[key] = {"description": home.PROFILE_FIELDS[key].doc, "anyOf": [schema, {"type": "null"}]}
    return _closed({**own, **marks_schema(profile.FIELDS)})


def _home(suffix: str, required: Collection[str] = (), skip: Collection[str] = ()) -> Schema:
    own = _fields(home.FIELDS, skip)
    own["secrets"] = {"description": home.FIELDS["secrets"].doc, **_by_name(ref("Source"), _SECRET)}
    own["profiles"] = {
        "description": home.FIELDS["profiles"].doc,
        **_by_name({"anyOf": [ref(f"Profile{suffix}"), {"type": "null"}]}, _PROFILE),
    }
    own["planning_kits"] = {
        "description": home.FIELDS["planning_kits"].doc,
        "anyOf": [_by_name(ref(f"PlanningKit{suffix}"), _ANY), {"type": "null"}],
    }
    return _closed(own, required)


def _schedule() -> Schema:
    at = {"type": "string", "description": "RFC 3339 with an offset: 2031-02-03T09:00:00+01:00."}
    every = {"type": "string", "description": "30m, 2h or 1d; at least 1m."}
    cron = {"type": "string", "description": "Five fields: minute hour day month weekday."}
    tz = {"type": "string", "description": "An IANA time zone."}
    return {
        "oneOf": [
            _closed({"at": at}, ["at"]),
            _closed({"every": every}, ["every"]),
            _closed({"cron": cron, "tz": tz}, ["cron"]),
        ]
    }


def _target() -> Schema:
    ident: Schema = {"type": ["string", "integer"]}
    return {
        "oneOf": [
            {"enum": ["local", "owner_chat"]},
            _closed({"to": TEXT, "chat": ident, "thread": ident}, ["to"], dependentRequired={"thread": ["chat"]}),
        ]
    }


def _definitions() -> dict[str, Schema]:
    definitions: dict[str, Schema] = {
        "SecretRef": _closed({"secret": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}}, ["secret"]),
        "Source": secret.SOURCE,
        "Schedule": _schedule(),
        "Target": _target(),
        "Model": _closed(_fields(inference.MODEL_FIELDS), ["provider", "model"]),
        "ModelPart": _closed(_fields(inference.MODEL_FIELDS)),
        "Monitor": _closed({"script": TEXT, "url": TEXT}, minProperties=1, maxProperties=1),
        "Policy": _closed(_fields(policy.FIELDS)),
        "State": _closed(_fields(state.FIELDS)),
        "Parameter": _closed(
            {
                "type": {"enum": ["string", "integer", "number", "boolean"]},
                "default": {"type": ["string", "number", "boolean"]},
                "description": TEXT,
            },
            ["type"],
        ),
        "Place": {
            "oneOf": [
                _closed({}),
                _closed({"exec": {"type": "array", "items": TEXT, "minItems": 1}}, ["exec"]),
                _closed({"host": TEXT}, ["host"]),
            ]
        },
        "Inference": _thing(inference.FIELDS, ["models", "default"]),
        "Job": _thing(job.FIELDS, job.REQUIRED, **_one_of("prompt", "run")),
        "File": _thing_of_file(**_one_of("source", "text", "block")),
        # In a template, or in a home that extends one, any part may be left to the other.
        "InferencePart": _thing({**inference.FIELDS}),
        "JobPart": _thing(job.FIELDS),
        "FilePart": _thing_of_file(),
        "Profile": _profile(""),
        "ProfilePart": _profile("Part"),
        "WholeHome": {**_home("", ["harness"], ["extends"]), **_SOMEWHERE},
        "ExtendingHome": {**_home("Part", ["extends"]), **_SOMEWHERE},
        "Template": _home("Part", (), home.NOT_IN_TEMPLATE),
        "Home": {
            "if": {"type": "object", "required": ["extends"]},
            "then": ref("ExtendingHome"),
            "else": ref("WholeHome"),
        },
        **{name: schema for table in TABLES.values() for name, schema in _of_table(table).items()},
        "Notify": _closed(_fields(notify.FIELDS), ["url"]),
        "Moved": _closed({"from": TEXT, "to": TEXT}, ["from", "to"]),
    }
    models = definitions["InferencePart"]["properties"]["models"]["anyOf"][0]
    definitions["InferencePart"]["properties"]["models"]["anyOf"][0] = {
        **{k: v for k, v in models.items() if k != "minProperties"},
        "additionalProperties": {"anyOf": [ref("ModelPart"), {"type": "null"}]},
    }
    return definitions


def _of_table(table: Table) -> dict[str, Schema]:
    """A kind's thing as a whole, and as the part that a template or an extending home says of it."""
    marks = marks_schema(table.shapes)
    own = {**_fields(table.written), **marks}
    needed = [name for name, f in table.written.items() if f.needed]
    whole = _closed(own, needed, **(_one_of(*table.one_of) if table.one_of else {}))
    part = _closed(own)
    if table.short:
        short = table.fields[table.short].schema
        whole, part = {"anyOf": [whole, short]}, {"anyOf": [part, short]}
    return {table.thing: whole, f"{table.thing}Part": part}


def _thing_of_file(**more: Any) -> Schema:
    return _closed({**_fields(file.FIELDS), **marks_schema(file.SHAPES)}, **more)


def generate() -> dict[str, Any]:
    """The schema as plain JSON. Pure."""
    top = _fields(load.FIELDS)
    top["version"] = {"description": load.FIELDS["version"].doc, "const": 1}
    parts: dict[str, Schema] = {
        "name": load.FIELDS["name"].schema,
        "formerly": NAMES,
        "include": NAMES,
        "parameters": _by_name(ref("Parameter")),
        "places": _by_name(ref("Place")),
        "policy": ref("Policy"),
        "notify": _by_name(ref("Notify")),
        "state": ref("State"),
        "secrets": _by_name(ref("Source"), _SECRET),
        "templates": _by_name(ref("Template")),
        "homes": {**_by_name(ref("Home")), "type": "object"},
        "moved": {"type": "array", "items": ref("Moved")},
        "released": NAMES,
    }
    for key, schema in parts.items():
        top[key] = {"description": load.FIELDS[key].doc, **schema}
    whole = {"required": ["version", "name"], "anyOf": [{"required": ["homes"]}, {"required": ["include"]}]}
    # An included file says no name; editors use the one schema for both.
    part = {
        "not": {"required": ["name"]},
        "anyOf": [{"required": [k]} for k in ("homes", "templates", "places", "secrets")],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Setup of AI-agent homes, version 1",
        "type": "object",
        "properties": top,
        "patternProperties": {"^x-": {}},
        "additionalProperties": False,
        "anyOf": [whole, part],
        "$defs": _definitions(),
    }


def text() -> str:
    """The schema as the file holds it."""
    return json.dumps(generate(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
