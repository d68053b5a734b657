"""Writes docs/reference from the tables and commands that the program itself uses (`make docs`); a test compares."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from reconciler.cli.app import app
from reconciler.cli.render.explain import GUARDS, KINDS
from reconciler.event import EXIT
from reconciler_hermes import PROVIDER, versions
from reconciler_specs import inference, load, reading
from reconciler_specs.address import Kind
from reconciler_specs.home import BY_KIND
from reconciler_specs.reading import Fields
from reconciler_specs.resource import Mode

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
SAMPLES: Mapping[str, str] = {"0.16": "0.16.0", "0.18": "0.18.2", "0.19": "0.19.0"}


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
        f"Keys that begin with `x-` are left alone. Not part of this version yet: {_names(reading.LATER['setup'])}.\n",
        "## home\n",
        f"{docs['home']}\n",
        field_table(BY_KIND[Kind.HOME], classes=False),
        f"Not part of this version yet: {_names(reading.LATER['home'])}.\n",
        "## profile\n",
        f"{docs['profile']}\n",
        field_table(BY_KIND[Kind.PROFILE], classes=False),
        f"Not part of this version yet: {_names(reading.LATER['profile'])}.\n",
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
    ]
    return "\n".join(parts)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{n}`" for n in sorted(names))


def commands() -> dict[str, Any]:
    """The command line's own objects, by the words that call them (`state list`)."""
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
    for name, command in commands().items():
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
        words = [_argument(p) for p in arguments]
        parts += [f"## reconciler {name}\n", f"{command.help}\n"]
        parts += [f"```\nreconciler {' '.join([name, *words, '[OPTIONS]'])}\n```\n"]
        rows = [(f"`{_argument(p)}`", p.help or "") for p in arguments]
        rows += [(f"`{_option(p)}`", p.help or "") for p in options]
        parts.append(table(("", "what"), rows))
    return "\n".join(parts)


def _argument(parameter: Any) -> str:
    word = str(parameter.name).upper() + ("…" if parameter.nargs == -1 or parameter.multiple else "")
    return word if parameter.required else f"[{word}]"


def _option(parameter: Any) -> str:
    names = ", ".join(sorted([*parameter.opts, *parameter.secondary_opts], key=len))
    if parameter.is_flag:
        return names
    # The type's own name (`path`, `text`) in capitals, as --help shows it.
    return f"{names} {str(parameter.type.name).upper().split(' ')[0]}"


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
    """Whether the engine holds anything by this guard: its name stands in it beyond the list of names, and a
    restart is something that a provider has to name as a fact."""
    root = REFERENCE.parent.parent
    if guard == "restart":
        return any("RESTARTS" in p.read_text(encoding="utf-8") for p in (root / "providers").rglob("*.py"))
    texts = [p.read_text(encoding="utf-8") for p in (root / "reconciler").glob("*.py")]
    return sum(text.count(f'"{guard}"') for text in texts) > 1


def providers_page() -> str:
    rows = []
    for kind, traits in PROVIDER.traits.items():
        fields = [n for n, f in BY_KIND[kind].items() if f.field] if kind is not Kind.PROFILE else ["description"]
        if kind is Kind.INFERENCE:
            fields = [n for n in fields if n in ("default", "fallbacks", "auxiliary", "unattended")]
        how = "place" if traits.by_place else "harness id"
        for field in fields:
            rows.append((kind.value, f"`{field}`", how, *(_stores(kind, field, v) for v in versions.TESTED)))
    return "\n".join(
        [
            HEAD,
            "# Provider matrix\n",
            "## hermes\n",
            table(("kind", "field", "matched by", *versions.TESTED), rows),
            "What `reconciler explain hermes` says of its limits:\n",
            "\n".join(f"- {line}" for line in PROVIDER.limits()) + "\n",
        ]
    )


def _stores(kind: Kind, field: str, series: str) -> str:
    if kind is Kind.JOB:
        return "no" if versions.missing(field, SAMPLES[series]) else "yes"
    if kind is Kind.INFERENCE:
        sample: Any = [] if field == "fallbacks" else {}
        refused = refused_inference({field: sample}, SAMPLES[series])
        return "no" if field in refused else "yes"
    return "yes"


def refused_inference(fields: Mapping[str, Any], version: str) -> Mapping[str, str]:
    """What the provider refuses of these fields."""
    from reconciler_hermes import inference as hermes_inference

    return hermes_inference.canon(fields, (), False, version).refused


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
