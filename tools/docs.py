"""Writes docs/reference from the tables and commands that the program itself uses (`make docs`); a test compares."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import typer

from reconciler.cli.app import COMMANDS, add_commands, app
from reconciler.cli.examples import EXAMPLES
from reconciler.cli.render.explain import GUARDS, KINDS
from reconciler.event import EXIT
from reconciler.observe import Observation
from reconciler.provider import Provider
from reconciler_specs import inference, load
from reconciler_specs.address import Address, Kind
from reconciler_specs.home import BY_KIND
from reconciler_specs.kit import ready_kit
from reconciler_specs.reading import Fields
from reconciler_specs.resource import Mode, Resource
from reconciler_specs.shape import Json, shape_of

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
HEAD = "<!-- Made by tools/docs.py (make docs); do not edit. -->\n"
EXIT_CODES = {
    0: "nothing to do, or everything applied; a plain `plan` or `status` that could look",
    1: "the setup, the command line or the program: nothing was started",
    2: "with `--detailed-exitcode`: apply would write something",
    3: "something is held (with `--detailed-exitcode`, and always for `apply`)",
    4: "a home that failed, a field that cannot be stored, or a row that was not applied",
    5: "waits for consent",
    6: "an outcome is uncertain",
}
# The versions that a provider is tested with, as its column says them; another provider has one column.
VERSIONS: Mapping[str, Mapping[str, str | None]] = {
    "hermes": {"0.16": "0.16.0", "0.18": "0.18.2", "0.19": "0.19.0"},
    "native": {"": "1"},
}
MODEL: Json = {"provider": "openrouter", "model": "vendor/model"}
# A value of each field, to ask the providers about. tests/test_docs.py says when one is missing.
FIELDS: Mapping[Kind, Mapping[str, Json]] = {
    Kind.PROFILE: {"description": "Writes."},
    Kind.JOB: {
        "name": "brief", "schedule": {"every": "60m"}, "prompt": "Write.", "before": "x.sh", "run": "x.sh",
        "deliver": "local", "failure_deliver": "local", "model": MODEL, "skills": ["x"], "toolsets": ["web"],
        "workdir": "/srv", "context_from": ["self"], "session": "isolated", "repeat": 2,
        "monitor": {"script": "x.sh"}, "paused": True, "id": "brief", "metadata": {"a": 1},
    },
    Kind.INFERENCE: {"default": MODEL, "fallbacks": [MODEL], "auxiliary": {"vision": MODEL}, "unattended": MODEL},
    Kind.SETTING: {"value": 1},
    Kind.FILE: {"text": "x", "block": "x", "mode": "0644"},
    Kind.CHANNEL: {
        "enabled": False, "secrets": {"token": "TELEGRAM_BOT_TOKEN"}, "allow": ["1"], "admins": ["1"], "open": True,
        "owner_chat": "1", "adapter": "x", "extra": {"a": 1},
    },
    Kind.ROUTE: {"match": {"channel": "slack"}, "profile": "default", "order": 1},
    Kind.WEBHOOK: {
        "secret": {"secret": "HOOK"}, "events": ["push"], "prompt": "x", "deliver": {"to": "slack"}, "skills": ["x"],
        "deliver_only": True, "description": "x",
    },
    Kind.MCP_SERVER: {
        "command": "x", "args": ["-y"], "env": {"A": "b"}, "cwd": "/srv", "transport": "sse",
        "url": "https://example.org",
        "headers": {"A": "b"}, "timeout": 30, "enabled": True, "extra": {"a": 1},
    },
    Kind.TOOLSET: {"tools": ["web"]},
    Kind.SKILL: {"enabled": True, "content": "0" * 24},
    Kind.PLUGIN: {"enabled": True, "config": {"a": 1}},
    Kind.SECRET: {"value": {"env": "A"}, "present": True},
    Kind.KIT: {
        "source": "viable:project", "kit": ready_kit("kanban"), "types": ["task"], "board": {"slug": "house"},
    },
}  # fmt: skip
KEYS: Mapping[Kind, str] = {
    Kind.JOB: "brief", Kind.SETTING: "agent.max_turns", Kind.FILE: "SOUL.md", Kind.CHANNEL: "telegram",
    Kind.ROUTE: "ops", Kind.WEBHOOK: "hook", Kind.KIT: "house", Kind.MCP_SERVER: "files", Kind.TOOLSET: "default",
    Kind.SKILL: "house", Kind.PLUGIN: "disk-cleanup", Kind.SECRET: "A_TOKEN",
}  # fmt: skip


# What a thing of the kind is never without.
WITH: Mapping[Kind, Mapping[str, Json]] = {
    Kind.ROUTE: {"match": {"channel": "slack"}, "profile": "default"},
    Kind.WEBHOOK: {"secret": {"secret": "HOOK"}},
}
# What a setup declares beside it, where a harness asks for that.
BESIDE: Mapping[Kind, Resource] = {
    Kind.KIT: Resource(Address("main", "default", Kind.PLUGIN, "workboard"), {"enabled": True}, {}),
}


def pages() -> dict[str, str]:
    """File name → text of every generated page."""
    return {
        "setup.md": setup_page(),
        "commands.md": commands_page(),
        "codes.md": codes_page(),
        "providers.md": providers_page(),
    }


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(head)]
    lines = [f"| {' | '.join(cells[0])} |", "|" + "---|" * len(cells[0])]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def schema_type(schema: Mapping[str, Any]) -> str:
    """A JSON Schema in a word or two."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{v}`" for v in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(schema_type(s) for s in schema[key]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {schema_type(schema.get('items', {}))}"
    return {"object": "map", "string": "text", "boolean": "true or false"}.get(str(kind), str(kind))


def field_table(fields: Fields, *, classes: bool = True) -> str:
    if not classes:
        return table(("key", "type", "what"), ((f"`{n}`", schema_type(f.schema), f.doc) for n, f in fields.items()))
    rows = ((f"`{n}`", schema_type(f.schema), f.shape.cls.value if f.field else "–", f.doc) for n, f in fields.items())
    return table(("key", "type", "class", "what"), rows)


def setup_page() -> str:
    docs = {**{word: doc for word, (doc, _) in KINDS.items()}}
    parts = [
        HEAD,
        "# Setup reference\n",
        "The keys of `setup.yaml`, from the tables by which it is read. Maps are closed: another key is an error, with "
        "“did you mean”. The JSON Schema for editors is `reconciler explain --schema`.\n",
        "## The setup\n",
        field_table(load.FIELDS, classes=False),
        "Keys that begin with `x-` are left alone.\n",
        "## home\n",
        f"{docs['home']}\n",
        field_table(BY_KIND[Kind.HOME], classes=False),
        "## profile\n",
        f"{docs['profile']}\n",
        field_table(BY_KIND[Kind.PROFILE], classes=False),
    ]
    for word, kind in (
        ("inference", Kind.INFERENCE),
        ("job", Kind.JOB),
        ("setting", Kind.SETTING),
        ("file", Kind.FILE),
    ):
        parts += [f"## {word}\n", f"{docs[word]}\n", field_table(BY_KIND[kind])]
        if word == "inference":
            parts += ["A model (`inference.models.NAME`):\n", field_table(inference.MODEL_FIELDS, classes=False)]
        if word == "setting":
            parts += ["A setting is written `dotted.path: value`.\n"]
    parts += [
        "## Keys of any thing\n",
        "For profiles, inference, jobs and files.\n",
        table(
            ("key", "what"),
            (
                ("`fields`", "field: mode, one of " + ", ".join(f"`{m.value}`" for m in Mode)),
                ("`protect`", "`true`: never deleted, also once the block has left the setup"),
                ("`unset`", "fields to clear in the harness"),
            ),
        ),
        "## policy\n",
        f"{docs['policy']}\n",
        field_table(KINDS["policy"][1], classes=False),
        "## state\n",
        f"{docs['state']}\n",
        field_table(KINDS["state"][1], classes=False),
    ]
    return "\n".join(parts)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in sorted(names))


def commands() -> dict[str, Any]:
    """The command line's own objects, by the words that call them (`state list`)."""
    add_commands()
    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found.update({f"{name} {sub}": child for sub, child in command.commands.items()})
        else:
            found[name] = command
    return found


def commands_page() -> str:
    parts = [HEAD, "# Command reference\n"]
    # In one order, whichever command this process was first asked for.
    order = {name: place for place, name in enumerate(COMMANDS)}
    for name, command in sorted(commands().items(), key=lambda c: (order.get(c[0].split()[0], len(order)), c[0])):
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
        words = [_argument(p) for p in arguments]
        parts += [f"## reconciler {name}\n", f"{command.help}\n"]
        parts += [f"```\nreconciler {' '.join([name, *words, '[OPTIONS]'])}\n```\n"]
        rows = [(f"`{_argument(p)}`", p.help or "") for p in arguments]
        rows += [(f"`{_option(p)}`", p.help or "") for p in options]
        parts.append(table(("", "what"), rows))
        if name in EXAMPLES:
            parts.append("\n".join(["```", *EXAMPLES[name], "```\n"]))
    return "\n".join(parts)


def _argument(parameter: Any) -> str:
    word = str(parameter.name).upper() + ("…" if parameter.nargs == -1 or parameter.multiple else "")
    return word if parameter.required else f"[{word}]"


def _option(parameter: Any) -> str:
    names = ", ".join(sorted([*parameter.opts, *parameter.secondary_opts], key=len))
    if parameter.is_flag:
        return names
    return f"{names} {parameter.metavar or str(parameter.type.name).upper().split(' ')[0]}"


def codes_page() -> str:
    outcomes = sorted(EXIT.items(), key=lambda item: (item[1], str(item[0])))
    return "\n".join(
        [
            HEAD,
            "# Exit codes and guards\n",
            "## Exit codes\n",
            table(("code", "meaning"), ((str(code), words) for code, words in EXIT_CODES.items())),
            "The strongest of 6, 1, 4, 5, 3, 2, 0 wins.\n",
            "## Outcomes of a row\n",
            table(("outcome", "exit code"), ((f"`{outcome}`", str(code)) for outcome, code in outcomes)),
            "## Guards\n",
            "Lifted by name, with `--allow GUARD`.\n",
            table(
                ("guard", "what it holds", "in this release"),
                (
                    (f"`{name}`", doc, "yes" if holds(name) else "accepted, holds nothing yet")
                    for name, doc in GUARDS.items()
                ),
            ),
        ]
    )


def holds(guard: str) -> bool:
    """Whether anything is held by this guard: the engine or a provider names it beyond the list of names, and a
    restart is something that a provider has to name as a fact."""
    root = REFERENCE.parent.parent
    files = [*(root / "reconciler").glob("*.py"), *(root / "providers").rglob("*.py")]
    texts = [p.read_text(encoding="utf-8") for p in files]
    if guard == "restart":
        return any("RESTARTS" in t for p, t in zip(files, texts, strict=True) if "providers" in p.parts)
    return sum(text.count(f'"{guard}"') for text in texts) > 1


def providers_page() -> str:
    providers = {entry.name: entry.load() for entry in sorted(entry_points(group="reconciler.providers"))}
    columns = [
        (name, provider, *pair)
        for name, provider in providers.items()
        for pair in VERSIONS.get(name, {"": None}).items()
    ]
    rows = []
    for kind in FIELDS:
        for field, sample in FIELDS[kind].items():
            how = {"place" if p.traits[kind].by_place else "harness id" for p in providers.values() if kind in p.traits}
            stored = [_stores(provider, kind, field, sample, version) for _, provider, _, version in columns]
            rows.append((kind.value, f"`{field}`", " or ".join(sorted(how)), *stored))
    heads = (f"{name} {shown}".strip() for name, _, shown, _ in columns)
    parts = [HEAD, "# Provider matrix\n", table(("kind", "field", "matched by", *heads), rows)]
    for name, provider in providers.items():
        parts += [f"## {name}\n", f"What `reconciler explain {name}` says of its limits:\n"]
        parts.append("\n".join(f"- {line}" for line in provider.limits()) + "\n")
    return "\n".join(parts)


def _stores(provider: Provider, kind: Kind, field: str, sample: Json, version: str | None) -> str:
    """Whether the provider takes a value of the field, in a home of this version."""
    if kind not in provider.traits:
        return "no"
    if kind is Kind.SECRET:
        return "yes"  # the engine's own, wherever there is a door for it
    key = KEYS.get(kind, "")
    fields = {**WITH.get(kind, {}), field: sample}
    resource = Resource(Address("main", "default", kind, key), fields, {n: shape_of(v) for n, v in fields.items()})
    beside = [BESIDE[kind]] if kind in BESIDE else []
    around = Observation(version=version)
    if beside:
        around = provider.prepare({found.address: found for found in (resource, *beside)}, around)
    for options, cell in (({}, "yes"), ({"on_unsupported": "degrade"}, "degraded")):
        canon = provider.canon(replace(resource, options=options), around, lambda path: None)
        if not canon.refused.keys() & {field, ""}:
            return cell
    return "no"


def main() -> int:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        path = REFERENCE / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path.relative_to(REFERENCE.parent.parent)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
