"""Hermes opens a native home: it sees the same jobs, edits one, and native reads that back."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from hermes.lab import python_of
from native.lab import do, tree
from reconciler.errors import ProviderError
from reconciler.observe import Wanted
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler_native.disk import Disk
from reconciler_native.errors import LoadFailed
from reconciler_native.folder import DiskSource, Folder
from reconciler_native.home import Home, init
from reconciler_native.operator import apply_operator
from reconciler_native.provider import NativeProvider

pytestmark = pytest.mark.hermes

_CALL = """
import json, sys
from cron import jobs as cj
what, args = json.loads(sys.argv[1])
if what == "list":
    found = [{k: j.get(k) for k in ("id", "name", "prompt", "schedule_display", "state", "enabled", "deliver", "skills",
                                    "next_run_at")} for j in cj.list_jobs(include_disabled=True)]
elif what == "edit":
    found = cj.update_job(args["id"], {"prompt": args["prompt"]})["prompt"]
elif what == "pause":
    found = cj.pause_job(args["id"])["state"]
elif what == "due":
    found = [j["id"] for j in cj.get_due_jobs()]
elif what == "profiles":
    from hermes_cli import profiles
    found = [p.name for p in profiles.list_profiles()]
elif what == "description":
    from hermes_cli import profiles
    from pathlib import Path
    found = profiles.read_profile_meta(Path(args["path"])).get("description")
elif what == "tools":
    from hermes_cli import plugins
    from hermes_cli.config import load_config
    from hermes_cli.tools_config import _get_platform_tools
    from tools import mcp_tool
    from tools.skills_tool import _find_all_skills
    found = {
        "servers": mcp_tool._load_mcp_config(),
        "tools": sorted(_get_platform_tools(load_config(), "telegram", include_default_mcp_servers=False)),
        "plugins": [sorted(plugins._get_enabled_plugins()), sorted(plugins._get_disabled_plugins())],
        "skills": sorted(skill["name"] for skill in _find_all_skills()),
    }
print(json.dumps(found))
"""


def hermes(home: Path, what: str, **args: str) -> object:
    env = {"HOME": str(home.parent), "HERMES_HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    argv = [str(python_of("0.19.0")), "-I", "-c", _CALL, json.dumps([what, args])]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: object = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_hermes_sees_our_servers_tools_plugins_and_skills(home: Path) -> None:
    (home / ".env").write_text("DOCS_TOKEN=not-a-real-key-0123456789\n")
    env = {"TOKEN": {"secret": "DOCS_TOKEN"}}
    do(home, "mcp_servers.set", id="docs.v2", fields={"command": "uvx", "args": ["docs"], "env": env})
    do(home, "toolsets.set", id="telegram", fields={"tools": ["web", "file"]})
    do(home, "plugins.set", id="disk-cleanup", fields={"enabled": True})
    do(home, "plugins.set", id="image_gen/openai", fields={"enabled": False})
    for name in ("brief", "other"):
        do(home, "skills.set", id=name, files={"SKILL.md": f"---\nname: {name}\ndescription: x\n---\nx\n"})
    do(home, "skills.set", id="other", enabled=False)
    seen = hermes(home, "tools")
    assert isinstance(seen, dict)
    server = seen["servers"]["docs.v2"]
    assert (server["command"], server["args"]) == ("uvx", ["docs"])
    assert server["env"] == {"TOKEN": "not-a-real-key-0123456789"}
    assert {"web", "file"} <= set(seen["tools"]) and "terminal" not in seen["tools"]
    assert seen["plugins"] == [["disk-cleanup"], ["image_gen/openai"]]
    assert "brief" in seen["skills"] and "other" not in seen["skills"]


def test_hermes_sees_and_edits_our_jobs(home: Path) -> None:
    do(home, "profiles.create", name="coder", description="Codes.")
    a = do(home, "jobs.create", prompt="Write the brief.", schedule="0 8 * * 1-5", name="brief", deliver="local")[
        "job_id"
    ]
    b = do(home, "jobs.create", prompt="Look.", schedule="every 2h", skills=["s"], deliver="slack:C1", enabled=False)[
        "job_id"
    ]
    c = do(home, "jobs.create", prompt="Once.", schedule="2131-02-03T09:00:00+01:00", metadata={"x": 1})["job_id"]
    before = tree(home)
    listed = hermes(home, "list")
    assert isinstance(listed, list)
    assert {j["id"]: (j["name"], j["prompt"], j["schedule_display"], j["state"], j["deliver"]) for j in listed} == {
        a: ("brief", "Write the brief.", "0 8 * * 1-5", "scheduled", "local"),
        b: ("Look.", "Look.", "every 120m", "paused", "slack:C1"),
        c: ("Once.", "Once.", "once at 2131-02-03 08:00", "scheduled", "origin"),
    }
    assert {name: data for name, data in tree(home).items() if name in before} == before  # nothing to repair
    assert hermes(home, "due") == []
    assert hermes(home, "edit", id=a, prompt="Edited by Hermes.") == "Edited by Hermes."
    assert hermes(home, "pause", id=c) == "paused"
    assert do(home, "jobs.get", id=a)["job"]["prompt"] == "Edited by Hermes."
    once = do(home, "jobs.get", id=c)["job"]
    assert (once["enabled"], once["residue"]["host"]) == (False, {"x": 1})
    # What Hermes wrote is a proper folder, kept byte for byte; and our next change keeps Hermes's records' text.
    now = (home / "cron" / "jobs.json").read_text()
    folder = Folder(home, DiskSource(Disk()))
    assert folder.profiles["default"].jobs.encode("x") == now.encode()
    do(home, "jobs.update", id=b, prompt="Ours again.")
    after = (home / "cron" / "jobs.json").read_text()
    theirs = json.dumps(json.loads(now)["jobs"][0], indent=2).replace("\n", "\n    ")
    assert theirs in now and theirs in after
    assert isinstance(hermes(home, "list"), list)


def command(home: Path, *words: str) -> str:
    """What `hermes cron …` prints."""
    env = {"HOME": str(home.parent), "HERMES_HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    argv = [str(python_of("0.19.0").with_name("hermes")), "cron", *words]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_person_works_on_it_with_hermes_own_commands(home: Path) -> None:
    do(home, "jobs.create", id="brief-1", prompt="Write the brief.", schedule="0 8 * * 1-5", name="brief")
    do(home, "jobs.create", id="look", prompt="Look.", schedule="every 2h", enabled=False)
    listed = command(home, "list", "--all")
    for words in ("brief-1 [active]", "brief", "0 8 * * 1-5", "look [paused]", "every 120m"):
        assert words in listed
    command(home, "edit", "brief-1", "--prompt", "Edited by hand.", "--schedule", "30 7 * * *")
    job = do(home, "jobs.get", id="brief-1")["job"]
    assert (job["prompt"], job["schedule"]["expr"]) == ("Edited by hand.", "30 7 * * *")
    assert do(home, "jobs.update", id="brief-1", name="Brief")["job"]["residue"]["name"] == "Brief"
    assert "Brief" in command(home, "list")


def test_hermes_knows_our_profiles(home: Path) -> None:
    do(home, "profiles.create", name="coder", description="Codes.")
    do(home, "profiles.create", name="gone")
    do(home, "profiles.delete", name="gone")
    found = hermes(home, "profiles")
    assert isinstance(found, list) and set(found) == {"default", "coder"}
    assert hermes(home, "description", path=str(home / "profiles" / "coder")) == "Codes."


def test_we_read_what_hermes_approves(home: Path) -> None:
    """A grant of ours is Hermes's own."""
    do(home, "access.allow", platform="telegram", user_id="7")
    code = (
        "import json\nfrom gateway.pairing import PairingStore\n"
        "print(json.dumps(PairingStore().is_approved('telegram', '7')))"
    )
    env = {"HOME": str(home.parent), "HERMES_HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    argv = [str(python_of("0.19.0")), "-I", "-c", code]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip().endswith("true"), done.stderr


def test_a_home_of_hermes_is_not_taken_for_ours(tmp_path: Path) -> None:
    """The two look alike; only what `init` has made is written by us."""
    root = tmp_path / "theirs"
    root.mkdir()
    (root / "config.yaml").write_text("_config_version: 33\n")
    ref = HomeRef("main", "native", LocalPlace(), str(root))
    with pytest.raises(ProviderError, match="not a native home"):
        NativeProvider().observe(ref, Wanted())
    with pytest.raises(LoadFailed, match="not a native home"):
        init(root)
    assert not apply_operator(Home(root), "jobs.create", {"prompt": "x", "schedule": "1h"})["ok"]
    assert [p.name for p in root.iterdir()] == ["config.yaml"]
