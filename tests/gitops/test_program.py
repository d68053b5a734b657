"""`reconciler gitops run` as a program: signals, the exit code, what is on stdout, and one at a time."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Mapping
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from gitops.conftest import SETUP, Site, events


def until(loop: subprocess.Popen[str], what: str) -> list[Mapping[str, Any]]:
    """Reads events up to the first of a kind."""
    assert loop.stdout is not None
    found: list[Mapping[str, Any]] = []
    for line in loop.stdout:
        found.append(json.loads(line))
        if found[-1]["event"] == what:
            return found
    raise AssertionError(f"it ended before {what}: {found} {loop.stderr.read() if loop.stderr else ''}")


def test_once_from_nothing_to_quiet(site: Site) -> None:
    first = site.run("gitops", "run", "--once")
    assert (first.returncode, first.stderr) == (0, "")
    told = events(first.stdout)
    assert all(e["version"] == 1 and e["at"] for e in told)
    assert told[0]["event"] == "start" and told[-1]["event"] == "stop"
    assert {e["address"]: e["outcome"] for e in told if e["event"] == "outcome"} == {
        "main": "applied",
        "main/default/jobs/brief": "applied",
    }
    assert site.jobs() == ["One."]
    assert [e["event"] for e in events(site.run("gitops", "run", "--once").stdout)] == ["start", "round", "stop"]
    # A person who plans in the checkout sees the same home, though its path is relative.
    assert site.run("plan", "--detailed-exitcode").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_pause(site: Site, number: signal.Signals) -> None:
    with site.start("--interval", "1h") as loop:
        until(loop, "round")
        loop.send_signal(number)
        out, err = loop.communicate(timeout=30)
    assert (loop.returncode, err) == (0, "")
    assert [e["event"] for e in events(out)] == ["stop"]


def test_what_it_answers_while_it_runs(site: Site) -> None:
    with site.start("--interval", "1h", "--http", "127.0.0.1:0") as loop:
        port = until(loop, "serving")[-1]["port"]
        until(loop, "round")
        opener = build_opener(ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            body = answer.read().decode()
        assert 'reconciler_gitops_home_applied_total{home="main"} 2' in body
        # The round's event comes after its numbers are in place.
        with opener.open(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            assert answer.read() == b"ok\n"
        loop.terminate()
        loop.communicate(timeout=30)
    assert loop.returncode == 0


def test_one_at_a_time(site: Site) -> None:
    with site.start("--interval", "1h") as loop:
        until(loop, "round")
        second = site.run("gitops", "run", "--once")
        assert second.returncode == 1 and "another loop runs" in second.stderr and "next:" in second.stderr
        loop.terminate()
        loop.communicate(timeout=30)
    assert site.run("gitops", "run", "--once").returncode == 0


def test_a_new_revision_while_it_runs(site: Site) -> None:
    with site.start("--interval", "1s") as loop:
        until(loop, "round")
        revision = site.push(SETUP.replace("One.", "Two."))
        told = until(loop, "revision")
        assert told[-1]["revision"] == revision
        until(loop, "round")
        assert site.jobs() == ["Two."]
        loop.terminate()
        loop.communicate(timeout=30)


def test_events_go_to_a_file_and_words_to_a_terminal(site: Site) -> None:
    master, slave = pty.openpty()
    with site.start("--once", "--events", "events.jsonl", stderr=slave, text=False) as loop:
        out, _ = loop.communicate(timeout=60)
    os.close(slave)
    words = os.read(master, 65536).decode()
    os.close(master)
    assert not out and loop.returncode == 0
    assert events((site.work / "events.jsonl").read_text())[0]["event"] == "start"
    assert "following main of origin" in words and "applied: main/default/jobs/brief" in words and "{" not in words


@pytest.mark.parametrize("asked", [False, True])
def test_a_person_at_a_terminal_gets_words_and_json_if_asked_for(site: Site, asked: bool) -> None:
    master, slave = pty.openpty()
    more = ["--events", "-"] if asked else []
    with site.start("--once", *more, stdout=slave, stderr=slave, text=False) as loop:
        loop.communicate(timeout=60)
    os.close(slave)
    said = os.read(master, 65536).decode()
    os.close(master)
    assert loop.returncode == 0
    assert ('"event": "round"' in said) is asked
    assert ("round over, exit 0: 2 applied" in said) is not asked


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--interval", "0s"], "a duration is expected"),
        (["--interval", "soon"], "a duration is expected"),
        (["--http", "0.0.0.0:80"], "only a loopback address"),
        (["--allow", "rebuild"], "only rewind"),
        (["--allow", "rewnd"], "no such guard"),
        (["--remote", "nosuch"], "no such remote"),
        (["--events", "no/such/folder/x"], "cannot be written"),
        (["-f", "../setup.yaml"], "no git checkout"),
    ],
)
def test_words_that_are_wrong(site: Site, words: list[str], said: str) -> None:
    done = site.run("gitops", "run", "--once", *words)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
    assert not (site.root / "home").exists()


def test_its_output_is_not_taken_any_more(site: Site) -> None:
    with site.start("--once") as loop:
        assert loop.stdout is not None
        loop.stdout.close()
        assert loop.wait(60) == 6
        assert loop.stderr is not None and "Traceback" not in loop.stderr.read()


GONE = SETUP[: SETUP.index("        jobs:")] + "        jobs: {}\n"


def test_a_delete_waits_for_an_approval_of_somebody_else(site: Site) -> None:
    assert site.run("gitops", "run", "--once").returncode == 0
    site.push(GONE)
    for _ in range(2):
        assert site.run("gitops", "run", "--once").returncode == 5
    assert site.jobs() == ["One."]
    approved = "reconciler plan --out ../plan.json && reconciler approve ../plan.json"
    line = ["setsid", "--wait", "bash", "-c", approved]  # a login session of their own
    subprocess.run(line, cwd=site.work, env=site.env, check=True, capture_output=True, timeout=120)
    done = site.run("gitops", "run", "--once")
    assert done.returncode == 0, done.stdout
    assert [(e["row"], e["outcome"]) for e in events(done.stdout) if e["event"] == "outcome"] == [("delete", "applied")]
    assert site.jobs() == []


def test_a_delete_that_the_merge_has_reviewed(site: Site) -> None:
    """The loop's tip was fetched from the remote, so that its trailer is not of its own making."""
    assert site.run("gitops", "run", "--once").returncode == 0
    (site.work / "setup.yaml").write_text(GONE)
    digest = json.loads(site.run("plan", "--json").stdout)["digest"]
    site.push(GONE, f"Take it away\n\nReviewed-plan: {'0' * 32}")
    wrong = site.run("gitops", "run", "--once")
    assert wrong.returncode == 5 and "is not of this plan" in wrong.stdout and wrong.stderr == ""
    site.push(f"{GONE}# reviewed\n", f"Take it away\n\nReviewed-plan: {digest}")
    done = site.run("gitops", "run", "--once")
    assert done.returncode == 0, done.stdout
    assert site.jobs() == []


def test_state_on_a_branch_is_the_one_that_a_person_sees(site: Site) -> None:
    """Also where the remote is said relative to the checkout, and though the loop has a work tree of its own."""
    site.git("remote", "set-url", "origin", "../hub.git")
    site.push(SETUP.replace("name: team\n", "name: team\nstate: {backend: git, branch: reconciler-state}\n"))
    done = site.run("gitops", "run", "--once")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refs/heads/reconciler-state" in site.git("ls-remote", "--heads", "origin")
    seen = site.run("plan", "--detailed-exitcode")
    assert seen.returncode == 0, seen.stdout + seen.stderr
