"""Four runners, 25 runs each, on one branch: on homes of their own and on one that all share; no record lost."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from reconciler_state.repository import Repository
from runners import Runner

RUNNERS = 4
RUNS = 25


def text(number: int, upto: int) -> str:
    """What a runner's setup declares in its run `upto`: a job per run, in its own home and the common one by turns."""
    homes = ""
    for name, rest in ((f"own{number}", 0), ("common", 1)):
        jobs = "".join(
            f"          r{number}-{n}: {{schedule: {{every: 30m}}, prompt: x, deliver: local}}\n"
            for n in range(upto + 1)
            if n % 2 == rest
        )
        homes += (
            f"  {name}:\n    harness: hermes\n    path: HOME/{name}\n    first_contact: adopt\n    shared: true\n"
            f"    profiles:\n      default:\n" + (f"        jobs:\n{jobs}" if jobs else "        {}\n")
        )
    return f"version: 1\nname: setup{number}\nhomes:\n{homes}"


def test_no_record_is_lost(tmp_path: Path) -> None:
    first = Runner(tmp_path, "r0")
    runners = [first, *(Runner(tmp_path, f"r{n}", first) for n in range(1, RUNNERS))]
    for name in ("common", *(f"own{n}" for n in range(RUNNERS))):
        first.home(name)
    problems: list[str] = []

    def work(number: int) -> None:
        runner = runners[number]
        for upto in range(RUNS):
            runner.setup(text(number, upto))
            for _ in range(40):
                done = runner.apply()
                if not [e for e in done if str(e.outcome) not in ("applied", "None")]:
                    break
            else:
                problems.append(f"{number}/{upto}: {[(e.reason, str(e.outcome)) for e in done]}")
                return

    threads = [threading.Thread(target=work, args=(n,)) for n in range(RUNNERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]

    late = Runner(tmp_path, "late", first)
    for number in range(RUNNERS):
        late.setup(text(number, RUNS - 1))
        plan = late.plan()
        assert [(h.failed, h.hold, h.actions) for h in plan.homes] == [("", None, ())] * 2
    names = sorted(job["name"] for name in ("common", *(f"own{n}" for n in range(RUNNERS))) for job in
                   first.home(name).jobs().values())  # fmt: skip
    assert names == sorted(f"r{number}-{n}" for number in range(RUNNERS) for n in range(RUNS))
    remote = Repository(first.remote)
    made: list[str] = []
    for file in remote.run("ls-tree", "-r", "--name-only", "reconciler-state", "journal/").splitlines():
        records = [json.loads(line) for line in remote.run("show", f"reconciler-state:{file}").splitlines()]
        begun = {r["intent"]: r["path"] for r in records if r["what"] == "begin" and r["row"] == "create"}
        made += [begun[r["intent"]] for r in records if r["what"] == "outcome" and r["intent"] in begun
                 and r["outcome"] == "applied"]  # fmt: skip
        assert sum(r["what"] == "run" for r in records) == sum(r["what"] == "run-end" for r in records)
    assert sorted(made) == sorted(f"default/jobs/r{number}-{n}" for number in range(RUNNERS) for n in range(RUNS))
    assert not list(tmp_path.rglob("*.damaged-*"))
