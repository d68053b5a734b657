"""Which home it is, what serves it, what may be written, and of which version it is."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ProviderError
from reconciler.observe import Unknown, Wanted
from reconciler.place import LocalPlace
from reconciler.place_exec import ExecPlace
from reconciler_openclaw import home, install, roster, serving, versions
from reconciler_specs.address import Kind
from unit.openclaw.conftest import NEW, OLD, job


def test_nothing_and_an_empty_folder_are_no_home(site: Any) -> None:
    assert not site.observe().exists
    site.root.rmdir()
    assert not site.observe().exists


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["config.yaml", "cron/jobs.json"], "it holds config.yaml, cron, but no openclaw.json"),
        (["clawdbot.json"], "a home of Clawdbot"),
    ],
)
def test_look_alikes_are_refused(site: Any, files: list[str], said: str) -> None:
    for name in files:
        site.write(name, "{}")
    with pytest.raises(ProviderError, match=said):
        site.observe()


def test_a_file_is_no_home(site: Any) -> None:
    site.root.rmdir()
    site.root.write_text("x")
    with pytest.raises(ProviderError, match="is a file"):
        site.observe()


@pytest.mark.parametrize("line", ["OPENCLAW_CONFIG_READONLY=1", "export OPENCLAW_NIX_MODE='1'"])
def test_a_managed_config_is_blocked_by_name(site: Any, line: str) -> None:
    site.config()
    site.write(".env", line + "\n")
    assert line.split("=")[0].removeprefix("export ") in site.observe().blocked


def test_an_unmanaged_one_is_not(site: Any) -> None:
    site.config()
    site.write(".env", "OPENCLAW_CONFIG_READONLY=0\nA_TOKEN=x\n")
    assert site.observe().blocked == ""


def test_an_invalid_config_blocks_the_home(site: Any) -> None:
    path = site.config("{a: }")
    assert site.observe().blocked.startswith(f"{path}:1:5: ")


@pytest.mark.parametrize("text", ["{a: }", None])
def test_without_a_config_nothing_is_absent(site: Any, text: str | None) -> None:
    """A lost or broken config says nothing of its agents: their jobs are unknown, and nothing is made again."""
    site.config()
    site.jobs(job(agentId="ops"))
    if text is None:
        (site.root / "openclaw.json").unlink()
    else:
        site.config(text)
    observation = site.observe("main/ops/jobs/brief")
    for profile, kind in (("", Kind.PROFILE), ("ops", Kind.JOB), ("default", Kind.JOB), ("ops", Kind.SETTING)):
        assert isinstance(observation.things[profile, kind], Unknown), (profile, kind)
    assert observation.blocked


def test_a_home_is_read_through_a_place(site: Any) -> None:
    """Behind a command the files are the same ones, the database too."""
    site.config()
    site.jobs(job())
    place = ExecPlace(["env"], sys.executable)
    try:
        there = site.provider.observe(replace(site.ref, place=place), Wanted(everything=True))
    finally:
        place.close()
    here = site.observe(everything=True)
    assert there.things == here.things
    assert there.facts == here.facts


def test_the_install_is_found_by_folder_script_launcher_and_path(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place, script = LocalPlace(), str(site.package / "openclaw.mjs")
    launcher = site.user / "bin" / "openclaw"
    launcher.write_text(f'#!/bin/sh\nexec node "{script}" "$@"\n')
    launcher.chmod(0o755)
    for named in (str(site.package), script, str(launcher), "~/lib/node_modules/openclaw"):
        found = install.find(place, {"openclaw": named})
        assert (found.script, found.version, found.node) == (script, NEW, str(site.user / "bin" / "node")), named
    monkeypatch.setenv("PATH", str(launcher.parent))
    assert install.find(place, {}).version == NEW
    link = site.user / "bin2" / "openclaw"
    link.parent.mkdir()
    link.symlink_to(script)
    monkeypatch.setenv("PATH", str(link.parent))
    assert install.find(place, {}).argv == [str(site.user / "bin" / "node"), script]


def test_no_install(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(site.user))
    assert "no OpenClaw was found" in install.find(LocalPlace(), {}).why
    assert "there is no OpenClaw at /nowhere" in install.find(LocalPlace(), {"openclaw": "/nowhere"}).why
    (site.package / "package.json").write_text('{"name": "other", "version": "1"}')
    assert install.find(LocalPlace(), {"openclaw": str(site.package)}).version is None


def test_an_install_that_others_may_write_is_unsafe(site: Any) -> None:
    found = install.find(LocalPlace(), {"openclaw": str(site.package)})
    assert install.unsafe(LocalPlace(), found) == ""
    (site.package / "openclaw.mjs").chmod(0o666)
    assert "may be written by everybody" in install.unsafe(LocalPlace(), found)


@pytest.mark.parametrize(
    ("door", "said"),
    [
        ({"python": "/x"}, "door: python is not known"),
        ({"openclaw": "openclaw"}, "door.openclaw: an absolute path"),
        ({"node": 3}, "door.node: an absolute path"),
        ({"mode": "fast"}, "door.mode: one of auto, rpc, cli"),
        ({"quiet_gateway": "no"}, "door.quiet_gateway: true or false"),
    ],
)
def test_options(site: Any, door: dict[str, Any], said: str) -> None:
    assert any(said in line for line in site.provider.options(door))


def test_proper_options(site: Any) -> None:
    assert site.provider.options({"openclaw": "~/x", "node": "/n", "mode": "rpc", "quiet_gateway": False}) == []


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """Something that lives, with a switch in its environment."""
    code = "import time; print(1, flush=True); time.sleep(60)"
    env = {"OPENCLAW_CONFIG_READONLY": "1", "OPENCLAW_GATEWAY_TOKEN": "not-to-be-shown-0123"}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        found.stdout.readline()
        yield found
        found.kill()


def _started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def _lock(site: Any, name: str, **more: Any) -> None:
    config = f"{os.path.realpath(site.root)}/openclaw.json"
    record = {"createdAt": "2026-11-30T20:49:53.445Z", "configPath": config, "port": 28911, **more}
    site.write(f"tmp/openclaw-{os.getuid()}/{name}", json.dumps(record) + "  \t ")


def test_a_gateway_is_told_from_its_lock(site: Any, process: subprocess.Popen[bytes]) -> None:
    site.config()
    _lock(site, "gateway.state.lock", pid=process.pid, startTime=_started(process.pid))
    found = serving.find(home.locate(LocalPlace(), os.path.realpath(site.root)))
    assert found is not None
    assert (found.pid, found.port, found.other) == (process.pid, 28911, "")
    assert found.switches == {"OPENCLAW_CONFIG_READONLY"}
    observation = site.observe()
    assert "OPENCLAW_CONFIG_READONLY" in observation.blocked
    assert "not-to-be-shown" not in str(observation)
    assert site.provider.insider(site.ref, [1, process.pid]).startswith("it runs below the gateway")
    assert site.provider.insider(site.ref, [1]) == ""


def test_the_lock_of_a_dead_or_another_process_counts_for_nothing(site: Any, process: subprocess.Popen[bytes]) -> None:
    here = home.locate(LocalPlace(), os.path.realpath(site.root))
    _lock(site, "gateway.state.lock", pid=process.pid, startTime=_started(process.pid) - 1)
    assert serving.find(here) is None
    _lock(site, "gateway.state.lock", pid=2**22 + 1)
    assert serving.find(here) is None
    _lock(site, "gateway.state.lock", pid=process.pid, role="sqlite-maintenance")
    assert serving.find(here) is None
    site.write(f"tmp/openclaw-{os.getuid()}/gateway.state.lock", "torn {")
    assert serving.find(here) is None


def test_a_gateway_with_another_config_blocks(site: Any, process: subprocess.Popen[bytes]) -> None:
    site.config()
    _lock(site, "gateway.state.lock", pid=process.pid, configPath="/etc/other.json")
    found = serving.find(home.locate(LocalPlace(), os.path.realpath(site.root)))
    assert found is not None and "/etc/other.json" in found.other


def test_the_lock_of_7_1_lies_in_tmp(
    site: Any, process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = home.locate(LocalPlace(), os.path.realpath(site.root))
    monkeypatch.setattr(serving, "_TMP", str(site.user / "tmp"))
    name = f"gateway.{hashlib.sha256(b'/a/link/openclaw.json').hexdigest()[:8]}.lock"
    folder = site.user / "tmp" / f"openclaw-{os.getuid()}"
    folder.mkdir(parents=True)
    (folder / name).write_text(json.dumps({"pid": process.pid, "createdAt": "x", "configPath": here.config}))
    (folder / "gateway.00000000.lock").write_text(json.dumps({"pid": process.pid, "configPath": "/another/home.json"}))
    found = serving.find(here)
    assert found is not None and (found.pid, found.port) == (process.pid, 0)
    folder.chmod(0o777)
    assert serving.find(here) is None


def test_versions(site: Any) -> None:
    site.config()
    site.jobs(ran=NEW)
    assert site.observe().version == NEW
    assert site.provider.supported(NEW) == "" == site.provider.supported(OLD)
    site.jobs(ran=OLD)
    observation = site.observe()
    assert observation.version == f"{NEW} over {OLD}"
    assert "start its gateway once" in site.provider.supported(observation.version)
    assert "is not tested" in site.provider.supported("2026.12.1")
    assert "cannot be told" in site.provider.supported(None)
    assert versions.of_home(None, None) is None


@pytest.mark.parametrize(
    ("installed", "ran", "written", "said"),
    [
        (NEW, NEW, OLD, ""),  # served by the newer one, which left the file as it was
        (OLD, OLD, NEW, "which an older one refuses to write"),
        (NEW, OLD, OLD, "start its gateway once"),
        (NEW, OLD, None, "start its gateway once"),
    ],
)
def test_which_version_a_home_is_of(site: Any, installed: str, ran: str, written: str | None, said: str) -> None:
    site.install(installed)
    site.config("{meta: {lastTouchedVersion: '" + written + "'}}" if written else "{}")
    site.jobs(ran=ran)
    why = site.provider.supported(site.observe().version)
    assert said in why and bool(said) is bool(why)


def test_copies_with_secrets_are_told(site: Any) -> None:
    site.config()
    site.write("openclaw.json.rejected.1796071822", "{}")
    site.write(".reconciler-trash/openclaw.json", "{}")
    found = site.provider.examine(site.ref)
    assert [line.partition(":")[0] for line in found] == ["trash", "openclaw.json.rejected.1796071822"]


def test_the_default_agent() -> None:
    """S0-15: flagged, else the first declared, else `main`; 9.6 records it where it takes the flag away."""
    entries = {"b": {}, "a": {"default": True}}
    assert roster.read({"agents": {"entries": entries}}, NEW).default == "a"
    assert roster.read({"agents": {"list": [{"id": "B"}, {"id": "a"}]}}, OLD).default == "b"
    assert roster.read({}, NEW).default == "main"
    recorded = {"entries": {"ops": {}, "main": {}}, "defaults": {"systemAgent": {"agentId": "main"}}}
    found = roster.read({"agents": recorded}, NEW)
    assert (found.default, found.profiles) == ("main", ["default", "ops"])
    assert found.profile("main") == found.profile("") == "default"
    assert found.agent("new").path == ("agents", "entries", "new")


def test_both_forms_are_one_roster() -> None:
    old = roster.read({"agents": {"list": [{"id": "main"}, {"id": "ops", "name": "Ops"}]}}, OLD)
    new = roster.read({"agents": {"entries": {"main": {}, "ops": {"name": "Ops"}}}}, NEW)
    assert old.profiles == new.profiles == ["default", "ops"]
    assert old.agent("ops").entry["name"] == new.agent("ops").entry["name"] == "Ops"
    assert (old.agent("ops").path, new.agent("ops").path) == (("agents", "list", 1), ("agents", "entries", "ops"))
    assert roster.read({}, OLD).agent("default").path == ("agents", "list", -1)


def test_agents_that_cannot_be_profiles() -> None:
    found = roster.read({"agents": {"list": [{"id": "main"}, {"id": "default"}, {"id": "MAIN"}, 3]}}, OLD)
    assert found.profiles == ["default"]
    assert len(found.notes) == 2


@pytest.mark.parametrize(
    ("agents", "profile", "version", "where"),
    [
        ({"entries": {"main": {"workspace": "~/w"}}}, "default", NEW, "/home/me/w"),
        ({"defaults": {"workspace": "/w"}, "entries": {"main": {}}}, "default", NEW, "/w"),
        ({"defaults": {"workspace": "/w"}, "entries": {"main": {}, "ops": {}}}, "ops", NEW, "/w/ops"),
        ({"entries": {"main": {}}}, "default", NEW, "/s/workspace"),
        ({"entries": {"main": {}, "ops": {}}, "ownership": "explicit"}, "default", NEW, "/s/workspace-main"),
        ({"entries": {"main": {}, "ops": {}}, "ownership": "explicit"}, "ops", NEW, "/s/workspace-ops"),
        ({"list": [{"id": "main"}, {"id": "ops"}]}, "default", OLD, "/home/me/.openclaw/workspace"),
        ({"list": [{"id": "main"}, {"id": "ops"}]}, "ops", OLD, "/s/workspace-ops"),
    ],
)
def test_workspaces(agents: dict[str, Any], profile: str, version: str, where: str) -> None:
    found = roster.read({"agents": agents}, version)
    assert roster.workspace({"agents": agents}, found, found.agent(profile), "/s", "/home/me", version) == where
