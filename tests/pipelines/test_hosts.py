"""The loop without a forge: the cron script, systemd units and container file of examples/09-gitops."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from gitops.conftest import SETUP, Site, events
from pipelines.forge import EXAMPLE, real
from tools.docs import commands


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(real(tmp_path))


def cron(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    line = [str(EXAMPLE / "cron" / "reconcile.sh"), str(site.work), *words]
    return subprocess.run(line, cwd="/", env=site.env, capture_output=True, text=True, check=False, timeout=120)


def test_cron_is_quiet_unless_somebody_has_to_look(site: Site) -> None:
    first = cron(site)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert site.jobs() == ["One."]
    store = site.home / "cron" / "jobs.json"
    store.write_text(store.read_text().replace("One.", "Mine."))
    drift = cron(site)
    assert drift.returncode == 3
    assert [(e["event"], e["address"]) for e in events(drift.stdout)] == [("drift", "main/default/jobs/brief")]
    site.push(SETUP.replace("prompt", "promt"))
    broken = cron(site)
    assert broken.returncode == 1 and '"line": 12' in broken.stdout
    kept = events((site.root / "state" / "reconciler" / "events.jsonl").read_text())
    assert [e["event"] for e in kept].count("round") == 3
    assert (site.root / "state" / "reconciler").stat().st_mode & 0o077 == 0


def test_the_line_of_the_crontab() -> None:
    line = (EXAMPLE / "cron" / "crontab").read_text().splitlines()[-1]
    *times, command = line.split(maxsplit=5)
    assert len(times) == 5 and all(re.fullmatch(r"[\d*/,-]+", part) for part in times)
    script, checkout, *words = command.split()
    assert script == f"{checkout}/cron/reconcile.sh" and os.access(EXAMPLE / "cron" / "reconcile.sh", os.X_OK)
    parses(["reconciler", "gitops", "run", "--once", *words])


def parses(argv: list[str]) -> None:
    """Whether these are words of `reconciler gitops run`."""
    assert argv[:3] == ["reconciler", "gitops", "run"]
    known = {option for parameter in commands()["gitops run"].params for option in parameter.opts}
    assert {word for word in argv if word.startswith("-")} <= known


@pytest.mark.parametrize("name", ["reconciler-gitops.service", "reconciler-once.service", "reconciler-once.timer"])
def test_systemd_units(name: str, tmp_path: Path) -> None:
    path = EXAMPLE / "systemd" / name
    unit = configparser.ConfigParser(interpolation=None, strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(path.read_text())
    assert unit["Unit"]["Description"]
    if "Service" in unit:
        parses(shlex.split(unit["Service"]["ExecStart"]))
    verify = shutil.which("systemd-analyze")
    if verify:
        copies = [shutil.copy(p, tmp_path) for p in (EXAMPLE / "systemd").iterdir()]
        for copy in map(Path, copies):
            copy.write_text(copy.read_text().replace("ExecStart=reconciler", "ExecStart=/bin/true"))
        done = subprocess.run(
            [verify, "verify", "--user", str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert "Unknown" not in done.stderr, done.stderr


def test_a_unit_stops_as_it_is_told_to(site: Site) -> None:
    """KillSignal of the unit: the loop ends by itself, with 0."""
    unit = (EXAMPLE / "systemd" / "reconciler-gitops.service").read_text()
    words = shlex.split(re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0])[3:]
    with site.start(*(w.replace(":9190", ":0") for w in words)) as loop:
        assert loop.stdout is not None
        for line in loop.stdout:
            if '"event": "round"' in line:
                break
        loop.terminate()
        loop.communicate(timeout=30)
    assert "KillSignal=SIGTERM" in unit and loop.returncode == 0


def test_the_container_file() -> None:
    lines = (EXAMPLE / "container" / "Containerfile").read_text().splitlines()
    said = dict(line.split(maxsplit=1) for line in lines if re.match(r"(FROM|USER|ENTRYPOINT|CMD|STOPSIGNAL) ", line))
    parses([*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])])
    assert said["STOPSIGNAL"] == "SIGTERM" and said["USER"] != "root"
