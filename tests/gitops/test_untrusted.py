"""Plans of setups from somebody else: the homes are as a trusted runner has published them, and nothing is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitops.conftest import SETUP, Site

TOKEN = "sk-proj-" + "a1B2c3D4" * 6
# The program, with every process, connection and opened file of it written down.
WATCHED = """\
import json, os, sys
log = open(sys.argv.pop(1), "a")
def hook(event, args):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "socket.connect", "open"):
        words = args[1] if event == "subprocess.Popen" else args[0]
        if event == "socket.connect":
            words = args[1]
        log.write(json.dumps([event, str(words)]) + chr(10)); log.flush()
sys.addaudithook(hook)
from reconciler.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A home that follows main, published; the checkout is at a branch for review."""
    made = Site(Path(os.path.realpath(tmp_path)))
    assert made.run("apply", "--yes").returncode == 0
    assert made.run("observe", "--out", "../homes.json").returncode == 0
    made.git("checkout", "-q", "-b", "review")
    return made


def plan(site: Site, *words: str, log: Path | None = None) -> subprocess.CompletedProcess[str]:
    """On a runner that has the checkout and the observation, and nothing else."""
    rest = ["plan", "--untrusted", "--base", "origin/main", "--observed", str(site.root / "homes.json"), *words]
    line = ["reconciler", *rest] if log is None else [sys.executable, "-c", WATCHED, str(log), *rest]
    env = {**site.env, "HOME": str(site.root / "elsewhere"), "XDG_STATE_HOME": str(site.root / "no-state")}
    return subprocess.run(line, cwd=site.work, env=env, capture_output=True, text=True, check=False, timeout=120)


def write(site: Site, text: str) -> None:
    (site.work / "setup.yaml").write_text(text)


def test_it_says_what_a_merge_would_do(site: Site) -> None:
    assert "Nothing to do." in site.run("apply", "--yes").stdout
    home = site.home.rename(site.root / "not-here")  # nobody looks at it
    write(site, SETUP.replace("One.", "Two."))
    done = plan(site, "--detailed-exitcode")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "One. → Two." in done.stdout and "as published at" in done.stdout and "to confirm" not in done.stdout
    home.rename(site.home)
    trusted = json.loads(site.run("plan", "--json").stdout)["homes"][0]["rows"]
    told = json.loads(plan(site, "--json").stdout)["homes"][0]["rows"]
    words = ("address", "row", "tier", "fields")
    assert [[r.get(w) for w in words] for r in told] == [[r.get(w) for w in words] for r in trusted]


def test_drift_and_deletes_are_seen_too(site: Site) -> None:
    store = site.home / "cron" / "jobs.json"
    store.write_text(store.read_text().replace("One.", "Mine."))
    assert site.run("observe", "--out", "../homes.json").returncode == 0
    drift = plan(site, "--detailed-exitcode")
    assert drift.returncode == 3 and "drift" in drift.stdout
    write(site, SETUP[: SETUP.index("        jobs:")] + "        jobs: {}\n")
    assert "- default/jobs/brief  delete" in plan(site).stdout


HOSTILE = """\
version: 1
name: team
policy: {unattended: [provision homes, restore jobs], on_drift: watch}
places: {evil: {exec: [touch, RAN]}}
secrets: {A_TOKEN: {command: [touch, RAN]}, B_TOKEN: {file: HOME/private}}
homes:
  main:
    harness: native
    path: HOME/other
    at: evil
    door: {python: RAN.sh}
    first_contact: adopt
    secrets: {A_TOKEN: {command: [sh, -c, touch RAN]}}
    profiles:
      default:
        jobs:
          brief: {schedule: {every: 30m}, prompt: Two., deliver: local}
  more:
    harness: native
    path: HOME/third
    at: evil
    secrets: {A_TOKEN: {command: [touch, RAN]}}
    profiles: {default: {}}
"""


def hostile(site: Site, text: str) -> str:
    (site.root / "private").write_text("private\n")
    script = site.root / "ran.sh"
    script.write_text(f"#!/bin/sh\ntouch {site.root}/ran\n")
    script.chmod(0o755)
    return text.replace("RAN.sh", str(script)).replace("RAN", str(site.root / "ran")).replace("HOME", str(site.root))


def watched(site: Site, *words: str) -> tuple[subprocess.CompletedProcess[str], list[list[str]]]:
    log = site.root / "log"
    log.write_text("")
    done = plan(site, *words, log=log)
    return done, [json.loads(line) for line in log.read_text().splitlines()]


def test_a_hostile_setup_starts_nothing_and_looks_at_nothing(site: Site) -> None:
    write(site, hostile(site, HOSTILE))
    (site.work / ".gitattributes").write_text("* filter=evil\n")
    hook = site.work / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {site.root}/ran\n")
    hook.chmod(0o755)
    done, told = watched(site)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (site.root / "ran").exists()
    programs = [words for event, words in told if event != "open"]
    assert programs and all(event == "subprocess.Popen" for event, _ in told if event != "open")
    assert {words.partition(",")[0] for words in programs} == {"['git'"}
    assert all("core.hooksPath=/dev/null" in words or words == "['git', 'version']" for words in programs), programs
    opened = [words for event, words in told if event == "open"]
    forbidden = [site.root / name for name in ("home", "other", "third", "private", "state")]
    assert opened and not [name for name in opened if any(Path(name).is_relative_to(f) for f in forbidden)]
    for words in (
        "to confirm: changes the setup's policy",
        "to confirm: changes the path:",
        "to confirm: changes the place: nothing → evil",
        "to confirm: changes the door: nothing →",
        "to confirm: changes the first contact: provision → adopt",
        "to confirm: changes where secrets/A_TOKEN is from: nothing →",
        "to confirm: adds a home: native at",
        "One. → Two.",
    ):
        assert words in done.stdout, words
    assert "private" not in done.stdout.replace(f"{site.root}/private", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("include: [../*.yaml]\n", "leads out of the setup's folder"),
        ("include: [link.yaml]\n", "lies outside the setup's folder"),
        ("include: [pipe.yaml]\n", "not a regular file"),
    ],
)
def test_a_setup_that_leads_out_is_refused(site: Site, text: str, said: str) -> None:
    (site.root / "outside.yaml").write_text("homes: {}\n")
    (site.work / "link.yaml").symlink_to(site.root / "outside.yaml")
    os.mkfifo(site.work / "pipe.yaml")
    write(site, SETUP.replace("homes:", f"{text}homes:"))
    done, told = watched(site)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
    assert not [words for event, words in told if event == "open" and "outside" in words]


def test_a_source_that_is_a_link_is_refused(site: Site) -> None:
    (site.root / "private.md").write_text("private\n")
    (site.work / "rules.md").symlink_to(site.root / "private.md")
    write(site, SETUP.replace("        jobs:", "        files: {SOUL.md: {source: rules.md}}\n        jobs:"))
    done, told = watched(site)
    assert done.returncode == 1 and "outside the setup's folder" in done.stderr
    assert not [words for event, words in told if event == "open" and words.endswith("private.md")]


def test_what_nobody_had_asked_for_is_unknown(site: Site) -> None:
    """That a file is not in the observation does not say that the home has none."""
    more = "        files: {SOUL.md: {text: Be kind.}}\n        settings: {agent.max_turns: 9}\n        jobs:"
    write(site, SETUP.replace("        jobs:", more))
    done = plan(site)
    assert "blocked" in done.stdout and "it was not published" in done.stdout
    assert "create" not in done.stdout.replace("to create", "")


def test_a_home_that_goes_and_another_name(site: Site) -> None:
    text = SETUP.replace("name: team", "name: mine\nformerly: [team]").replace("  main:", "  other:")
    write(site, text)
    done = plan(site)
    assert "to confirm: changes the setup's name: team → mine" in done.stdout
    assert "to confirm: takes away the home main" in done.stdout
    assert "a new home: it can be planned once this is merged" in done.stdout


def test_no_secret_is_published(site: Site) -> None:
    (site.home / "config.yaml").write_text(
        f"_config_version: 33\nmodel: {{api_key: {TOKEN}}}\nmine: {{token: {TOKEN}}}\n"
    )
    (site.home / ".env").write_text(f"OPENROUTER_API_KEY={TOKEN}\n")
    store = site.home / "cron" / "jobs.json"
    store.write_text(store.read_text().replace("One.", f"Use {TOKEN}"))
    done = site.run("observe", "--out", "../homes.json")
    assert done.returncode == 0, done.stdout + done.stderr
    text = (site.root / "homes.json").read_text()
    assert TOKEN not in text and TOKEN[8:24] not in text
    assert '"$hidden": ""' in text and text.count('"$hidden"') == text.count('"$hidden": ""')
    assert (site.root / "homes.json").stat().st_mode & 0o777 == 0o600
    key = next((site.root / "state" / "reconciler" / "keys").iterdir()).read_bytes()
    assert key.hex() not in text


def test_what_others_keep_there_is_not_published(site: Site) -> None:
    site.run("native", "jobs.create", "--root", str(site.home), "--json", json.dumps(
        {"id": "own", "name": "diary", "prompt": "A private diary.", "schedule": "1h"}
    ))  # fmt: skip
    assert site.run("observe", "--out", "../homes.json").returncode == 0
    text = (site.root / "homes.json").read_text()
    assert "diary" in text and "A private diary." not in text


def test_observing_writes_no_home_and_no_state(site: Site) -> None:
    def tree(root: Path) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}

    before = tree(site.home), tree(site.root / "state")
    assert site.run("observe", "--out", "../homes.json").returncode == 0
    assert (tree(site.home), tree(site.root / "state")) == before


@pytest.mark.parametrize("change", ["edit", "cut", "empty", "other", "newer", "gone", "folder"])
def test_an_observation_that_is_none_is_refused(site: Site, change: str) -> None:
    path = site.root / "homes.json"
    text = path.read_text()
    path.unlink()
    if change == "folder":
        path.mkdir()
    elif change != "gone":
        edits = {
            "edit": text.replace("One.", "Six."),
            "cut": text[: len(text) // 2],
            "empty": "",
            "other": '{"format": "reconciler.planfile/1"}',
            "newer": text.replace("reconciler.observed/1", "reconciler.observed/9"),
        }
        path.write_text(edits[change])
    done = plan(site)
    assert done.returncode == 1 and "homes.json" in done.stderr and "next:" in done.stderr
    assert "Traceback" not in done.stderr and not done.stdout


@pytest.mark.parametrize("base", ["nosuch", "--exec=touch", "HEAD:setup.yaml", "", "main..review"])
def test_a_base_that_is_no_commit(site: Site, base: str) -> None:
    done = site.run("plan", "--untrusted", f"--base={base}", "--observed", "../homes.json")
    assert done.returncode == 1 and "--base" in done.stderr and "Traceback" not in done.stderr


def test_words_that_do_not_go_together(site: Site) -> None:
    done = plan(site, "--out", "plan.json")
    assert done.returncode == 1 and "no plan file" in done.stderr and not (site.work / "plan.json").exists()
    (site.root / "mine.txt").write_text("mine\n")
    lost = site.run("observe", "--out", "../mine.txt")
    assert lost.returncode == 1 and (site.root / "mine.txt").read_text() == "mine\n"


def test_a_home_that_cannot_be_read_is_published_as_such(site: Site) -> None:
    (site.home / "cron" / "jobs.json").write_text("{")
    assert site.run("observe", "--out", "../homes.json").returncode in (0, 4)
    write(site, SETUP.replace("One.", "Two."))
    done = plan(site)
    assert "One. → Two." not in done.stdout and "0 to change" in done.stdout
