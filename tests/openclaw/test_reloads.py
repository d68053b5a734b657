"""What a plan says of restarts is what the gateways themselves say, and a refused model comes with the close ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openclaw.fake_gateway import Fake, served
from openclaw.lab import NEW, OLD, Lab
from openclaw.test_door import change
from reconciler.action import Action, Row
from reconciler_openclaw import nearby, reloads
from reconciler_openclaw.door_line import Line
from reconciler_specs.address import Address, Kind


@pytest.mark.openclaw
def test_each_word_of_the_table_is_the_gateways_own(shared: Lab) -> None:
    if shared.gateway is None:
        shared.start()
    words = {".".join(map(str, path)): needs for path, needs in reloads.words(shared.version).items()}
    # An answer tells of what is just below it too; each takes its time.
    asked = {word.rpartition(".")[0] or word for word in words}
    kinds: dict[str, str] = {}
    with shared.session() as wire:
        for path in sorted(asked):
            found = shared._ask(wire, "config.schema.lookup", {"path": path})["payload"]
            kinds |= {part["path"]: part["reloadKind"] for part in [found, *found["children"]]}
    assert {word: kinds[word] == "restart" for word in words} == words


@pytest.mark.parametrize(
    ("path", "new", "old"),
    [
        ("gateway.port", True, True),
        ("gateway.controlUi.enabled", False, True),
        ("gateway.reload.mode", False, False),
        ("discovery.mdns.mode", False, True),
        ("browser.enabled", False, True),
        ("browser", True, True),
        ("mcp", True, False),  # a part of it would
        ("mcp.servers.fs", False, False),
        ("plugins.allow", False, True),
        ("plugins", False, True),
        ("agents.entries.ops.tools.profile", False, False),
        ("logging.level", False, False),
    ],
)
def test_the_longest_word_counts(path: str, new: bool, old: bool) -> None:
    steps = tuple(path.split("."))
    assert (reloads.restarts(steps, NEW), reloads.restarts(steps, OLD)) == (new, old)


def names(fake: Fake, **fields: Any) -> str:
    changes = tuple(change(name, value) for name, value in fields.items())
    row = Action(Row.UPDATE, Address("main", "default", Kind.INFERENCE), changes=changes)
    with Line(fake.ref(), None, print) as line:
        return nearby.names(line, [row])


def test_the_names_close_to_an_unknown_one_are_said(tmp_path: Path) -> None:
    listed = [("anthropic", "claude-sonnet-5"), ("anthropic", "claude-opus-5"), ("openai", "gpt-6")]
    methods = {"models.list": lambda _: {"models": [{"provider": p, "id": i} for p, i in listed]}}
    good = {"provider": "openai", "model": "gpt-6"}
    with served(tmp_path, methods=methods) as fake:
        said = names(fake, default={"provider": "anthropic", "model": "claude-sonet-5"}, fallbacks=[good])
        assert said.startswith(" (this gateway knows anthropic/claude-sonnet-5")
        assert "gpt-6" not in said
        assert names(fake, default={"provider": "zzz", "model": "none"}) == ""
        assert names(fake, auxiliary={"image": {"provider": "openai", "model": "gtp-6"}}).endswith("openai/gpt-6)")
