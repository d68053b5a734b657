"""A home in grammar form → the YAML text that a person would keep (adopt, init); no library writes it.

Groups in the order people read: inference, settings, files, jobs; long texts after `|`; defaults left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .scalars import resolve
from .shape import Json
from .tables import TABLES

WIDTH = 110
_ORDER = {
    "profile": ("description", "inference", "settings", "files", *(kind.value for kind in TABLES), "jobs"),
    "home": (
        "extends", "harness", "path", "url", "key", "project", "target", "at",
        "harness_version", "timezone", "first_contact", "shared", "restart",
        "door", "with", "policy", "secrets", "project_settings", "planning_kits", "profiles",
    ),
    "inference": ("models", "default", "fallbacks", "auxiliary", "unattended", "rebase"),
    "job": (
        "name", "schedule", "run", "before", "prompt", "model", "skills", "toolsets", "context_from", "workdir",
        "session", "repeat", "monitor", "deliver", "failure_deliver", "paused", "id", "metadata",
    ),
    "file": ("source", "text", "block", "mode", "seed"),
}  # fmt: skip
_TABLES = frozenset(kind.value for kind in TABLES)
_DEFAULTS: Mapping[str, Mapping[str, Json]] = {
    "home": {"first_contact": "ask", "shared": False, "restart": "ask"},
    "inference": {"rebase": "ours", "fallbacks": [], "auxiliary": {}},
    "job": {"paused": False, "skills": [], "toolsets": [], "context_from": [], "metadata": {}},
    "file": {"seed": False},
    "profile": {},
}
_COMMENTS = {
    "inference": "The models that this profile uses, by your own names for them.",
    "settings": "Settings of the harness. What is not listed here stays as it is.",
    "files": "Files of the profile. What is not listed here is never touched.",
    "jobs": "What runs when, and where the answer goes.",
}

# What YAML 1.1 (PyYAML, and thereby the harnesses) would read as something else than text.
_YAML11 = re.compile(
    r"(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF|~|null|Null|NULL|=|<<"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?0x[0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_,]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*)\Z"
)
_PLAIN = re.compile(r"[A-Za-z0-9_./~+$(][A-Za-z0-9_./~+$()@%=,;!?'&*<>|^ -]*\Z")
_FLOW_UNSAFE = re.compile(r"[\[\]{},]")

# What a person who reviews the file would not see, or would see in another order, and what YAML takes for a line end:
# controls (but tab and newline), format characters, fillers, lone surrogates, tags. Joiners and the emoji selector
# stand as they are where they only shape the letter or emoji before them.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0e\ufeff"
    "\uffa0\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
    "|(?<![\u0600-\u0dff\ufe0f\u2190-\u2bff\U0001f000-\U0001faff])[\u200c\u200d]"
    "|(?<![\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff])\ufe0f(?!\u20e3)"
)


def quoted(text: str, *, is_json: bool = False) -> str:
    """A text in double quotes on one line; what nobody would see stands there as an escape."""
    return escaped(json.dumps(text, ensure_ascii=False), is_json=is_json)


def escaped(text: str, *, is_json: bool = False) -> str:
    """What is in double quotes, or JSON, with the hidden characters in it as escapes."""
    return HIDDEN.sub(lambda found: _escape(ord(found[0]), is_json), text)


def _escape(number: int, is_json: bool) -> str:
    if number <= 0xFFFF:
        return f"\\u{number:04x}"
    if not is_json:
        return f"\\U{number:08x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"


def ambiguous(text: str) -> bool:
    """Whether `text` has to be quoted, since some YAML reader would take it for something else than this text."""
    if _YAML11.match(text) or not isinstance(resolve(text), str):
        return True
    if not _PLAIN.match(text) or text != text.strip() or text.startswith(("---", "...")):
        return True
    return " #" in text or "#" in text or text[-1:] == ":"


def scalar(value: Json, *, flow: bool = False) -> str:
    """A scalar on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return json.dumps(value)
    if ambiguous(value) or (flow and _FLOW_UNSAFE.search(value)):
        return quoted(value)
    return str(value)


def key_text(key: str) -> str:
    return scalar(key, flow=True)


def flow(value: Json) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key_text(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    return scalar(value, flow=True)


def blockable(text: str) -> bool:
    """Whether a text of several lines can stand after `|` and read back the same."""
    if "\n" not in text.rstrip("\n") and len(text) < WIDTH and not text.endswith("\n"):
        return False
    if text.startswith((" ", "\n", "\t")) or not text.strip():
        return False
    return HIDDEN.search(text) is None


def block(text: str, indent: int) -> list[str]:
    """A text after `|`: the indicator, then its lines."""
    body = text.rstrip("\n")
    trailing = len(text) - len(body)
    mark = {0: "|-", 1: "|"}.get(trailing, "|+")
    pad = " " * indent
    lines = [pad + line if line else "" for line in body.split("\n")]
    return [mark, *lines, *[""] * max(0, trailing - 1)]


def entry(key: str, value: Json, indent: int) -> list[str]:
    """`key: value` as lines: in one if it is short, else in block style."""
    pad, head = " " * indent, f"{' ' * indent}{key_text(key)}:"
    if isinstance(value, str):
        if blockable(value):
            first, *rest = block(value, indent + 2)
            return [f"{head} {first}", *rest]
        return [f"{head} {scalar(value)}"]
    if isinstance(value, Mapping) and value:
        one = f"{head} {flow(value)}"
        if len(one) <= WIDTH and not any(isinstance(v, str) and blockable(v) for v in value.values()):
            return [one]
        return [head, *(line for k, v in value.items() for line in entry(k, v, indent + 2))]
    if isinstance(value, list | tuple) and value:
        one = f"{head} {flow(value)}"
        if len(one) <= WIDTH or any(isinstance(v, Mapping | list | tuple) for v in value):
            return [one]
        return [head, *(f"{pad}  - {scalar(v)}" for v in value)]
    return [f"{head} {flow(value)}"]


def literal(value: Json) -> Json:
    """`value` so that no text in it is taken for a parameter: `$(` becomes `$$(`."""
    if isinstance(value, str):
        return value.replace("$(", "$$(")
    if isinstance(value, Mapping):
        return {k: literal(v) for k, v in value.items()}
    return [literal(v) for v in value] if isinstance(value, list | tuple) else value


def _sorted(what: str, value: Mapping[str, Json]) -> dict[str, Json]:
    """In reading order, without what is the default anyway."""
    order = _ORDER[what]
    rank = {name: i for i, name in enumerate(order)}
    keys = sorted(value, key=lambda k: rank.get(k, len(order)))
    defaults = _DEFAULTS[what]
    return {k: value[k] for k in keys if not (k in defaults and value[k] == defaults[k]) and value[k] is not None}


def _job(key: str, value: Mapping[str, Json], indent: int) -> list[str]:
    fields = {k: v for k, v in _sorted("job", value).items() if not (k == "name" and v == key)}
    return _things(key, fields, indent)


def _things(key: str, fields: Mapping[str, Json], indent: int) -> list[str]:
    pad = " " * indent
    if not fields:
        return [f"{pad}{key_text(key)}: {{}}"]
    return [f"{pad}{key_text(key)}:", *(line for k, v in fields.items() for line in entry(k, v, indent + 2))]


def _file(key: str, value: Mapping[str, Json], indent: int) -> list[str]:
    return entry(key, _sorted("file", value), indent)


def _profile(name: str, value: Mapping[str, Json], indent: int, comments: bool) -> list[str]:
    pad = " " * indent
    fields = {k: v for k, v in _sorted("profile", value).items() if v != {}}
    if not fields:
        return [f"{pad}{key_text(name)}: {{}}"]
    lines = [f"{pad}{key_text(name)}:"]
    for key, item in fields.items():
        if comments and key in _COMMENTS:
            lines.append(f"{pad}  # {_COMMENTS[key]}")
        match key:
            case "inference":
                lines += _things(key, _sorted("inference", item), indent + 2)
            case "jobs" | "files":
                lines.append(f"{pad}  {key}:")
                one = _job if key == "jobs" else _file
                for k, v in item.items():
                    lines += one(k, v, indent + 4)
            case "settings":
                lines += _things(key, item, indent + 2)
            case _ if key in _TABLES:
                lines.append(f"{pad}  {key}:")
                for k, v in item.items():
                    lines += entry(k, v, indent + 4)
            case _:
                lines += entry(key, item, indent + 2)
    return lines


def render_home(home_id: str, home: Mapping[str, Json], *, indent: int = 2, comments: bool = True) -> str:
    """A home's block as it stands below `homes:`. The same home as `home` when it is read again."""
    pad = " " * indent
    lines = [f"{pad}{key_text(home_id)}:"]
    for key, found in _sorted("home", home).items():
        value = found if key == "with" else literal(found)
        if key == "profiles" and value:
            lines.append(f"{pad}  profiles:")
            for name, profile in value.items():
                lines += _profile(name, profile, indent + 4, comments)
        elif key != "profiles":
            lines += entry(key, value, indent + 2)
    return "\n".join(lines) + "\n"


def render_setup(name: str, homes: Mapping[str, Mapping[str, Json]], head: Mapping[str, Any] | None = None) -> str:
    """A whole setup. `head` holds other keys of the setup (parameters, moved, released, policy)."""
    lines = ["version: 1", f"name: {scalar(name)}"]
    for key, value in (head or {}).items():
        lines += entry(key, value, 0)
    body = "".join(render_home(home_id, home) for home_id, home in homes.items())
    return "\n".join(lines) + "\nhomes:\n" + body


def starter(name: str = "solo", harness: str = "hermes", path: str = "~/.hermes", home_id: str = "main") -> str:
    """The commented setup.yaml of `reconciler init`: valid as it is, and everything else a comment away."""
    return _STARTER.format(name=scalar(name), harness=scalar(harness), path=scalar(path), home=key_text(home_id))


_STARTER = """\
# What your agents' homes are to hold. Only what is declared here is managed; everything else stays as it is.
# `reconciler plan` shows what would change, `reconciler apply` does it.
version: 1
name: {name}                       # the owner of what is declared here

# What to do when somebody changed a value in a home by hand: hold (report it), restore, watch or capture.
# policy: {{on_drift: hold}}

homes:
  {home}:                          # your own label for it
    harness: {harness}
    path: {path}
    # first_contact: adopt         # ask (the default), adopt what is there, or provision a new home
    profiles:
      default:
        # The models that this profile uses, by your own names for them. Secrets are only named.
        # inference:
        #   models:
        #     daily: {{provider: openrouter, model: vendor/model, key: {{secret: OPENROUTER_API_KEY}}}}
        #   default: daily

        # What runs when, and where the answer goes.
        jobs:
          # morning-brief:
          #   schedule: {{cron: "0 8 * * 1-5"}}   # or {{every: 30m}}, or {{at: "2031-02-03T09:00:00+01:00"}}
          #   prompt: |
          #     Read my calendar and the news, then write the brief.
          #   deliver: local                    # or owner_chat, or {{to: telegram, chat: "…"}}

        # Settings of the harness, by dotted path.
        # settings:
        #   agent.max_turns: 120

        # Files of the profile: `source` is the whole file, `block` only what stands between our marker lines.
        # files:
        #   SOUL.md: {{block: content/house-rules.md}}
"""
