"""What every provider of a Hermes-shaped home passes for MCP servers, toolsets, plugins and skills.

Each check takes a fresh World whose home has a `config.yaml`, `.env` with OPENROUTER_API_KEY, and nobody else in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from reconciler_specs.address import Kind
from reconciler_specs.load import load
from reconciler_specs.render import render_setup

from ..action import CLEAR, Fact, FieldRow, Row, Tier
from ..adopt import adopt_home
from ..capture import capture
from ..consent import Consent
from ..draft import draft, survey
from ..errors import UsageError
from ..plan import Options
from ..workspace import Workspace
from .kit import World, outcomes

CANARY = "canary-0123456789-value"
SKILL = "---\nname: brief\ndescription: Writes a brief.\n---\nWrite it.\n"
ALL = """
mcp_servers:
  docs.v2:
    command: uvx
    args: [docs]
    env: {DOCS_TOKEN: {secret: OPENROUTER_API_KEY}, LEVEL: info}
    extra: {tools: {include: [search]}}
  far: {url: 'https://example.org/mcp', headers: {X-Team: "blue"}, enabled: false}
toolsets:
  telegram: [web, file]
  cron: {only: [web]}
plugins:
  disk-cleanup: {enabled: true}
  image_gen/openai: {enabled: false}
skills:
  brief: {source: skill, enabled: true}
  maps: {enabled: false}
"""
PATHS = {
    "default/mcp_servers/docs.v2", "default/mcp_servers/far", "default/toolsets/telegram", "default/toolsets/cron",
    "default/plugins/disk-cleanup", "default/plugins/image_gen/openai", "default/skills/brief", "default/skills/maps",
}  # fmt: skip


def _source(world: World, **files: str) -> Path:
    folder = world.root / "skill"
    folder.mkdir(exist_ok=True)
    for name, text in (files or {"SKILL.md": SKILL, "more.md": "More.\n"}).items():
        (folder / name).write_text(text)
    return folder


def _config(world: World, old: str = "", new: str = "") -> str:
    path = world.home.path / "config.yaml"
    text = path.read_text() if path.exists() else ""
    if old:
        assert old in text, text
        text = text.replace(old, new)
        path.write_text(text)
    return text


def _all_goes(world: World) -> None:
    """Everything leaves the setup, and the home."""
    allowed = Options(allow=frozenset({"many-deletes", "last-of-kind"}))
    done = outcomes(world.apply(world.text(), allowed))
    assert set(done.values()) == {"applied"}, done
    assert not world.rows(world.text())


def made_converged_and_quiet(world: World) -> None:
    _source(world)
    text = world.text(rest=ALL)
    world.converge(world.text())
    rows = world.rows(text)
    assert rows.keys() >= PATHS and {a.row for a in rows.values()} <= {Row.CREATE, Row.UPDATE}
    assert Fact.RUNS_CODE in rows["default/mcp_servers/docs.v2"].facts
    assert Fact.NEW_CREDENTIAL in rows["default/mcp_servers/docs.v2"].facts
    assert Fact.NEW_ADDRESS not in rows["default/mcp_servers/docs.v2"].facts
    assert rows["default/plugins/disk-cleanup"].tier is Tier.CONFIRM
    assert rows["default/plugins/image_gen/openai"].tier is Tier.AUTO
    world.converge(text)
    before = world.tree()
    assert world.apply(text) == []
    assert world.tree() == before
    assert (world.home.path / "skills" / "brief" / "more.md").read_text() == "More.\n"
    assert "${OPENROUTER_API_KEY}" in _config(world)


def changes_reach_the_home(world: World) -> None:
    _source(world)
    world.converge(world.text(rest=ALL))
    (world.root / "skill" / "more.md").unlink()
    _source(world, **{"SKILL.md": SKILL + "Shorter.\n", "new.md": "New.\n"})
    less = ALL.replace("[web, file]", "[file, memory]").replace("args: [docs]", "args: [docs, --fast]")
    less = less.replace(", LEVEL: info", "").replace("disk-cleanup: {enabled: true}", "disk-cleanup: {enabled: false}")
    less = less.replace("maps: {enabled: false}", "maps: {enabled: false}\n  other: {enabled: false}")
    world.converge(world.text(rest=less))
    config = _config(world)
    assert "LEVEL" not in config and "--fast" in config
    folder = world.home.path / "skills" / "brief"
    assert sorted(path.name for path in folder.iterdir()) == ["SKILL.md", "new.md"]


def what_somebody_else_has_stays(world: World) -> None:
    _source(world)
    theirs = "mcp_servers:\n  own: {command: own, env: {K: v}}\nplugins: {enabled: [own]}\nskills: {disabled: [own]}\n"
    (world.home.path / "config.yaml").write_text("_config_version: 33\n# theirs\n" + theirs)
    world.converge(world.text())
    world.converge(world.text(rest=ALL))
    assert not {a.path for h in world.plan(world.text(rest=ALL)).homes for a in h.resources if a.key == "own"}
    _all_goes(world)
    config = _config(world)
    assert "# theirs" in config and "own: {command: own, env: {K: v}}" in config
    assert not (world.home.path / "skills" / "brief").exists()
    assert "docs.v2" not in config and "disk-cleanup" not in config and "maps" not in config
    for word in ("enabled: [own]", "disabled: [own]"):
        assert word in config


def drift_is_held_restored_and_captured(world: World) -> None:
    _source(world)
    text = world.text(rest=ALL)
    world.converge(text)
    _config(world, "uvx", "evil")
    (world.home.path / "skills" / "brief" / "more.md").write_text("Theirs.\n")
    rows = world.rows(text)
    server, skill = rows["default/mcp_servers/docs.v2"], rows["default/skills/brief"]
    assert [c.row for c in server.changes] == [FieldRow.DRIFT] == [c.row for c in skill.changes]
    assert any(note.startswith("security: ") for note in server.notes)
    assert not server.writes and world.apply(text) == []
    both = ("main/default/mcp_servers/docs.v2", "main/default/skills/brief")
    done = outcomes(world.apply(text, Options(restore=both)))
    assert set(done.values()) == {"applied"}, done
    assert not world.rows(text)
    (copy,) = (world.home.path / ".reconciler-trash").iterdir()
    assert (copy / "more.md").read_text() == "Theirs.\n"

    _config(world, "uvx", "uvy")
    (world.home.path / "skills" / "brief" / "more.md").write_text("Again.\n")
    setup = world.root / "setup.yaml"
    setup.write_text(text)

    def space() -> Workspace:
        harness = world.kit.provider.harness
        return Workspace(load(setup), world.space(text).store, {harness: world.provider})

    took = capture(space(), [both[0]], space)
    assert [item.field for item in took] == ["command"] and "uvy" in setup.read_text()
    assert list(world.rows(setup.read_text())) == ["default/skills/brief"]
    try:
        capture(space(), [both[1]], space)
    except UsageError as error:
        assert "made from a source" in str(error)
    else:
        raise AssertionError("a digest went into the setup")


def a_delete_needs_review_and_keeps_what_was_edited(world: World) -> None:
    _source(world)
    world.converge(world.text(rest=ALL))
    gone = world.text()
    plan = world.plan(gone)
    rows = frozenset(h.digests[a.address] for h in plan.homes for a in h.open)
    done = outcomes(world.apply(gone, consent=Consent(yes=True, approved=rows, terminal=True, reviewed=False)))
    assert "applied" not in done.values()
    (world.home.path / "skills" / "brief" / "more.md").write_text("Theirs.\n")
    row = world.rows(gone)["default/skills/brief"]
    assert row.row is Row.DELETE and row.hold is not None and "edited since" in row.hold.why
    (world.home.path / "skills" / "brief" / "more.md").write_text("More.\n")
    _all_goes(world)
    assert not (world.home.path / "skills" / "brief").exists()


def a_found_skill_is_let_go_and_never_deleted(world: World) -> None:
    _source(world)
    folder = world.home.path / "skills" / "office" / "brief"
    folder.mkdir(parents=True)
    for path in (world.root / "skill").iterdir():
        (folder / path.name).write_text(path.read_text())
    text = world.text(rest="skills:\n  brief: {source: skill}\n")
    world.converge(world.text())
    assert world.rows(text)["default/skills/brief"].row is Row.UNOWNED
    adopt_home(world.space(text), "main")
    assert not world.rows(text)
    row = world.rows(world.text())["default/skills/brief"]
    assert row.row is Row.FORGET
    world.converge(world.text())
    assert (folder / "SKILL.md").read_text() == SKILL


def a_source_that_leaves_takes_no_folder_away(world: World) -> None:
    _source(world)
    world.converge(world.text(rest="skills:\n  brief: {source: skill, enabled: true}\n"))
    text = world.text(rest="skills:\n  brief: {enabled: true}\n")
    row = world.rows(text)["default/skills/brief"]
    assert [(c.field, c.row) for c in row.changes] == [("content", FieldRow.RELEASE)]
    assert not any(c.write is CLEAR for c in row.changes)
    world.converge(text)
    assert (world.home.path / "skills" / "brief" / "SKILL.md").exists()


def adopt_drafts_the_kinds_and_no_secret(world: World) -> None:
    _source(world)
    world.converge(world.text(rest=ALL))
    _config(world, "LEVEL: info", f"LEVEL: info\n      PASTED_TOKEN: {CANARY}")
    found = survey(str(world.home.path), {world.kit.provider.harness: world.provider})
    made = draft(found, "main", str(world.home.path))
    block = made.block["profiles"]["default"]
    assert CANARY not in repr(made) and not block.get("settings")
    assert "main/default/mcp_servers/docs.v2: env holds a secret in the clear, which stays out" in made.look
    assert block["mcp_servers"]["docs.v2"] == {
        "command": "uvx",
        "args": ["docs"],
        "env": {"DOCS_TOKEN": {"secret": "OPENROUTER_API_KEY"}, "LEVEL": "info"},
        "extra": {"tools": {"include": ["search"]}},
    }
    assert block["mcp_servers"]["far"]["enabled"] is False
    assert set(block["toolsets"]) == {"telegram", "cron"}
    assert block["plugins"] == {"disk-cleanup": {"enabled": True}, "image_gen/openai": {"enabled": False}}
    assert block["skills"] == {"maps": {"enabled": False}}  # what is on is the harness's own default
    text = render_setup("another", {"main": {**made.block, "door": {}}}).replace("door: {}", f"door: {world.kit.door}")
    second = replace(world, root=world.root / "second")
    second.root.mkdir()
    adopt_home(second.space(text), "main")
    rows = second.rows(text)
    assert not rows, rows


def a_setting_that_a_kind_stands_for_is_refused(world: World) -> None:
    text = world.text(rest="settings:\n  mcp_servers.x.command: y\n  skills: {disabled: [a]}\n")
    rows = world.rows(text)
    for key, word in (("mcp_servers.x.command", Kind.MCP_SERVER), ("skills", Kind.SKILL)):
        row = rows[f"default/settings/{key}"]
        assert row.row is Row.REFUSED and f"belongs to {word}: declare it there" in row.reason


_LOOSER = "      approvals.mode: smart\n      hooks_auto_accept: true\n      command_allowlist: [ls, rm]\n"
_STRICT = "      approvals.mode: manual\n      hooks_auto_accept: false\n      command_allowlist: [ls]\n"


def a_security_setting_needs_consent_where_it_is_loosened(world: World) -> None:
    strict = world.text(rest="settings:\n" + _STRICT)
    loose = world.text(rest="settings:\n" + _LOOSER)
    names = ("approvals.mode", "hooks_auto_accept", "command_allowlist")
    world.converge(world.text())
    rows = world.rows(strict)
    assert rows["default/settings/approvals.mode"].tier is Tier.AUTO
    assert rows["default/settings/hooks_auto_accept"].tier is Tier.AUTO
    assert rows["default/settings/command_allowlist"].tier is Tier.CONFIRM  # from nothing to one
    world.converge(strict)
    rows = world.rows(loose)
    for name in names:
        row = rows[f"default/settings/{name}"]
        assert (row.tier, row.rule) == (Tier.CONFIRM, str(Fact.LOOSENS_SECURITY)), name
    world.converge(loose)
    assert {world.rows(strict)[f"default/settings/{name}"].tier for name in names} == {Tier.AUTO}

    _config(world, "smart", "manual")
    row = world.rows(loose)["default/settings/approvals.mode"]
    assert [c.row for c in row.changes] == [FieldRow.DRIFT]
    assert "security: the home's value is stricter" in row.notes
    world.converge(strict.replace("hooks_auto_accept: false", "hooks_auto_accept: true"))
    _config(world, "manual", "smart")
    row = world.rows(strict)["default/settings/approvals.mode"]
    assert "security: the home's value may be looser" in row.notes and not row.writes


def what_is_captured_is_said_in_the_setups_words(world: World) -> None:
    _source(world)
    text = world.text(rest=ALL)
    world.converge(text)
    _config(world, "LEVEL: info", "LEVEL: debug")
    _config(world, "- file", "- more")
    _config(world, "cron:\n  - web", "cron:\n  - find")
    setup = world.root / "setup.yaml"
    setup.write_text(text)

    def space() -> Workspace:
        return Workspace(load(setup), world.space(text).store, {world.kit.provider.harness: world.provider})

    for target in ("mcp_servers/docs.v2", "toolsets/telegram", "toolsets/cron"):
        assert len(capture(space(), [f"main/default/{target}"], space)) == 1
    said = setup.read_text()
    assert "env: {DOCS_TOKEN: {secret: OPENROUTER_API_KEY}, LEVEL: debug}" in said
    assert "telegram: [web, more]" in said and "cron: {only: [find]}" in said
    assert not world.rows(said)


TOOL_CHECKS: dict[str, Callable[[World], None]] = {
    check.__name__: check
    for check in (
        made_converged_and_quiet,
        changes_reach_the_home,
        what_somebody_else_has_stays,
        drift_is_held_restored_and_captured,
        what_is_captured_is_said_in_the_setups_words,
        a_delete_needs_review_and_keeps_what_was_edited,
        a_found_skill_is_let_go_and_never_deleted,
        a_source_that_leaves_takes_no_folder_away,
        adopt_drafts_the_kinds_and_no_secret,
        a_setting_that_a_kind_stands_for_is_refused,
        a_security_setting_needs_consent_where_it_is_loosened,
    )
}
