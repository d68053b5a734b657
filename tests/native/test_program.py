"""The short way of a cold verb: it says what the command line says, and leaves to it what is not plainly a verb."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from native.lab import argv, env, native
from reconciler_native import program

NEW = '{"id": "a", "prompt": "x", "schedule": "0 8 * * *"}'


@pytest.mark.parametrize(
    "words",
    [
        [], ["jobs.list"], ["jobs.list", "--root"], ["jobs.list", "--root="], ["jobs.list", "--help"],
        ["jobs.list", "--root", "x", "--nosuch", "y"], ["jobs.list", "--root", "x", "more"], ["init", "--root", "x"],
        ["serve", "--root", "x"], ["status", "--root", "x"], ["jobs.nope", "--root", "x"], ["--root", "x", "jobs.list"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_no_plain_verb_is_left_to_the_command_line(words: list[str]) -> None:
    assert program.main(words) is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["jobs.list"], 0),
        (["jobs.get", "--json", '{"id": "gone"}'], 1),
        (["jobs.get", "--json={"], 1),
        (["jobs.list", "--json", "[]"], 1),
        (["jobs.list", "--profile=nobody"], 1),
        (["jobs.list", "--at", "soon"], 2),
        (["jobs.list", "--door", "side"], 2),
        (["jobs.list", "--door", "live"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_both_ways_say_the_same(home: Path, words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    words = [words[0], "--root", str(home), *words[1:]]
    assert program.main(words) == code
    assert native(*words) == (code, json.loads(capsys.readouterr().out))


def test_a_word_that_is_no_option_is_told_with_the_usage(home: Path) -> None:
    done = subprocess.run(
        argv("jobs.list", "--root", str(home), "--nosuch", "x"), env=env(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "") and "--nosuch" in done.stderr


def test_the_program_takes_the_short_way(home: Path) -> None:
    """`reconciler native OP` loads neither the parser nor the libraries of the setup's language."""
    code = (
        "import sys\nfrom reconciler.cli import main\ntry:\n    main(sys.argv[1:])\nfinally:\n"
        "    slow = {'typer', 'pydantic', 'croniter', 'ruamel', 'networkx', 'yaml'}\n"
        "    print(sorted(slow & set(sys.modules)), file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, "native", "jobs.create", "--root", str(home), "--json", NEW]
    done = subprocess.run(words, env=env(), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["result"]["job_id"] == "a"
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("op", "args", "code"), [("jobs.list", "{}", 0), ("jobs.get", '{"id": "gone"}', 1), ("jobs.create", NEW, 6)]
)
@pytest.mark.parametrize("sink", ["full", "gone"])
def test_an_answer_that_nobody_gets_is_no_success_and_no_refusal(
    home: Path, op: str, args: str, code: int, sink: str
) -> None:
    """A full disk or a reader that went away behind the output: what was written is not to be written again."""
    if sink == "full":
        out = os.open("/dev/full", os.O_WRONLY)
    else:
        end, out = os.pipe()
        os.close(end)
    words = argv(op, "--root", str(home), "--json", args)
    done = subprocess.run(words, env=env(), stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    os.close(out)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    made = [job["id"] for job in native("jobs.list", "--root", str(home))[1]["result"]["jobs"]]
    assert made == (["a"] if op == "jobs.create" else [])
