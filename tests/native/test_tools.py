"""MCP servers, toolsets, plugins and skills on a native home: through the engine, cold and live, and by the verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from native.lab import do, refused, serving
from reconciler.testing.kit import Kit, World
from reconciler.testing.kit import world as make_world
from reconciler.testing.tools import SKILL, TOOL_CHECKS
from reconciler_native.home import init
from reconciler_native.provider import NativeProvider

TOKEN = "sk-" + "0123456789abcdef" * 2


class Quiet:
    """A home that nobody else touches, and in which no job is looked at."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def jobs(self) -> dict[str, str]:
        return {}

    def _nothing(self, *args: str) -> str:
        raise NotImplementedError

    add_job = _nothing

    def edit_job(self, harness_id: str, prompt: str) -> None:
        raise NotImplementedError

    def delete_job(self, harness_id: str) -> None:
        raise NotImplementedError

    def break_jobs(self) -> None:
        raise NotImplementedError

    def put_secret(self, value: str) -> None:
        raise NotImplementedError


def _home(path: Path) -> Quiet:
    init(path)
    (path / ".env").write_text(f"OPENROUTER_API_KEY={TOKEN}\n")
    return Quiet(path)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(Kit(NativeProvider(), _home, volatile=(".orchestrator.write",)), tmp_path)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[World]:
    path = tmp_path / "home"
    with serving(_home(path).path):
        kit = Kit(NativeProvider(), Quiet, "{mode: live}", volatile=("orchestrator.lock", ".orchestrator.write"))
        yield World(kit, tmp_path, Quiet(path), kit.provider)


@pytest.mark.parametrize("check", TOOL_CHECKS.values(), ids=TOOL_CHECKS)
def test_cold(world: World, check: Callable[[World], None]) -> None:
    check(world)


@pytest.mark.parametrize("name", ["made_converged_and_quiet", "changes_reach_the_home", "what_somebody_else_has_stays"])
def test_with_a_daemon_in_the_home(live: World, name: str) -> None:
    TOOL_CHECKS[name](live)


def test_the_verbs_say_what_is_wrong(tmp_path: Path) -> None:
    home = _home(tmp_path / "home").path
    assert "has no GONE" in refused(
        home, "mcp_servers.set", id="a", fields={"command": "x", "env": {"K": {"secret": "GONE"}}}
    )
    words = refused(home, "mcp_servers.set", id="a", fields={"command": "x", "env": {"A_TOKEN": TOKEN}})
    assert "only named" in words and TOKEN not in words
    assert "is not known" in refused(home, "mcp_servers.set", id="a", fields={"colour": "x"})
    assert "changes nothing" in refused(home, "toolsets.set", id="cli", fields={})
    assert "has no b" in refused(home, "plugins.delete", id="b")
    assert "belongs to toolsets" in refused(home, "settings.set", path="platform_toolsets.cli", value=["web"])
    assert "belongs to skills" in refused(home, "settings.set", path="skills", value={"disabled": ["a"]})
    assert "need a SKILL.md" in refused(home, "skills.set", id="a", files={"x.md": "x"})
    assert "not a path inside" in refused(home, "skills.set", id="a", files={"SKILL.md": "x", "../x": "y"})
    assert "not a skill's name" in refused(home, "skills.set", id="../a", files={"SKILL.md": "x"})
    assert "no skill a" in refused(home, "skills.delete", id="a")


def test_the_verbs_do_it(tmp_path: Path) -> None:
    home = _home(tmp_path / "home").path
    do(home, "mcp_servers.set", id="a.b", fields={"command": "x", "env": {"K": {"secret": "OPENROUTER_API_KEY"}}})
    do(home, "mcp_servers.set", id="a.b", fields={"timeout": 3})
    do(home, "plugins.set", id="p", fields={"enabled": True})
    do(home, "skills.set", id="brief", files={"SKILL.md": SKILL}, enabled=False)
    config = (home / "config.yaml").read_text()
    assert "a.b:" in config and "K: ${OPENROUTER_API_KEY}" in config and "timeout: 3" in config and "brief" in config
    do(home, "skills.delete", id="brief")
    do(home, "mcp_servers.delete", id="a.b")
    do(home, "plugins.delete", id="p")
    config = (home / "config.yaml").read_text()
    assert not [word for word in ("a.b", "brief", "- p") if word in config]
    assert not (home / "skills" / "brief").exists()


def test_a_skill_reached_through_a_link_is_left_alone(tmp_path: Path) -> None:
    home, outside = _home(tmp_path / "home").path, tmp_path / "outside"
    outside.mkdir()
    (outside / "SKILL.md").write_text(SKILL)
    (home / "skills").mkdir()
    (home / "skills" / "brief").symlink_to(outside)
    assert "links are not followed" in refused(home, "skills.set", id="brief", files={"SKILL.md": "x"})
    assert "links are not followed" in refused(home, "skills.delete", id="brief")
    assert (outside / "SKILL.md").read_text() == SKILL
