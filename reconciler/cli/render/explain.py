"""Explain: what can be declared, from the tables that the loader itself uses."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module

from reconciler_specs import file, home, inference, job, kit, load, policy, setting, state
from reconciler_specs.address import Kind
from reconciler_specs.reading import Fields, marks_schema
from reconciler_specs.tables import TABLES

from ...errors import UsageError
from ..common import providers


def _doc(kind: Kind) -> str:
    """What a kind is, as its module says it."""
    line = (import_module(f"reconciler_specs.{kind.value.removesuffix('s')}").__doc__ or "").split("\n")[0]
    words = line.partition(": ")[2]
    return words[:1].upper() + words[1:]


KINDS: dict[str, tuple[str, Fields]] = {
    "setup": ("The whole document, setup.yaml.", load.FIELDS),
    "template": (
        "What several homes have in common: any key of a home but its own place.",
        {name: entry for name, entry in home.FIELDS.items() if name not in home.NOT_IN_TEMPLATE},
    ),
    "home": ("One harness's state directory.", home.FIELDS),
    "profile": ("An agent within a home.", home.PROFILE_FIELDS),
    "inference": ("The models that a profile uses.", inference.FIELDS),
    "job": ("What runs when, with which prompt or script, and where the answer goes.", job.FIELDS),
    "setting": ("One value of the harness's own configuration, by its dotted path.", setting.FIELDS),
    "file": ("A file of the profile: whole, or only our block in it.", file.FIELDS),
    **{kind.value.removesuffix("s"): (_doc(kind), table.written) for kind, table in TABLES.items()},
    "policy": ("What plan does about drift, missing and removed things.", policy.FIELDS),
    "state": ("Where the record of what was applied is kept.", state.FIELDS),
}
MARKED = ("profile", "inference", "job", "file", *(kind.value.removesuffix("s") for kind in TABLES))
GUARDS = {
    "rebuild": "the home, or all we own of a store, is gone at once: make it again",
    "replaced-home": "the home at the path is another one than the one recorded",
    "unknown-version": "the harness's version is not tested or pinned",
    "many-deletes": "more deletes than policy.limits.deletes says (default: 5, or 30 % of what is owned)",
    "last-of-kind": "would delete every thing of a kind that the setup owns in the home",
    "restart": "the harness has to be restarted",
    "comment-loss": "a door will lose the comments of a file",
    "rewind": "the setup went back to an older commit",
}


def explain_text(topic: str | None) -> Iterator[str]:
    """A kind, a field, a harness or the guards; without a topic, what there is. Raises UsageError for a word that
    is none of them."""
    if topic is None:
        yield "kinds:"
        for name, (doc, _) in KINDS.items():
            yield f"  {name:<12} {doc}"
        yield f"harnesses: {', '.join(sorted(providers()))}"
        yield "more: reconciler explain KIND, KIND.FIELD, a harness, or guards"
        return
    name, _, field_name = topic.partition(".")
    name = _singular(name)
    if topic == "guards":
        for guard, doc in GUARDS.items():
            yield f"  --allow {guard:<16} {doc}"
    elif name in KINDS:
        doc, fields = KINDS[name]
        if field_name:
            if field_name not in fields:
                close = get_close_matches(field_name, fields, 1)
                raise UsageError(f"{name} has no field {field_name!r}", hint=f"fields: {', '.join(close or fields)}")
            fields = {field_name: fields[field_name]}
        else:
            yield f"{name}: {doc}"
        for key, entry in fields.items():
            yield f"  {key:<16} {entry.doc}"
            if field_name and entry.field:
                yield f"  {'':<16} value class: {entry.shape.cls}"
        if name in MARKED and not field_name:
            yield "  and of each:"
            for key, schema in marks_schema(fields).items():
                yield f"  {key:<16} {schema['description']}"
        if name == "planning_kit" and not field_name:
            yield "  ready ones, as source: kit:NAME"
            for word in kit.ready():
                found = kit.ready_kit(word)
                yield f"  {word:<17} {found['purpose']} ({', '.join(item['id'] for item in found['types'])})"
    else:
        yield from _harness(topic)


def _singular(word: str) -> str:
    whole = {"kit": "planning_kit", "kits": "planning_kit"}.get(word, word)
    return whole if whole in KINDS else whole.removesuffix("s")


def _harness(topic: str) -> Iterator[str]:
    found = providers({topic})
    if topic not in found:
        words = [*KINDS, *providers(), "guards"]
        close = get_close_matches(topic, words, 1)
        raise UsageError(
            f"nothing is called {topic!r}", hint=f"did you mean {close[0]}?" if close else ", ".join(words)
        )
    provider = found[topic]
    yield f"{topic}: what its provider can read and write"
    for kind, traits in provider.traits.items():
        how = "by its place" if traits.by_place else "by the harness's id"
        yield f"  {kind.value:<12} matched {how}{'; not shown by the harness' if traits.write_only else ''}"
    for line in provider.limits():
        yield f"  {line}"
