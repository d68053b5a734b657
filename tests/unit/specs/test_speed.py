"""What a load may cost: in imports, exactly; in time, with room for a slow machine."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from reconciler_specs.load import load_text

SPECS = Path(__file__).parents[3] / "specs"


def _modules_after(code: str) -> set[str]:
    program = f"import sys; sys.path.insert(0, {str(SPECS)!r})\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_loading_imports_no_more_than_it_needs() -> None:
    text = "version: 1\\nname: a\\nhomes: {m: {harness: hermes, path: /x, profiles: {default: {jobs: {b: "
    text += '{schedule: {cron: \\"0 8 * * 1-5\\"}, prompt: x, deliver: local}}}}}}\\n'
    modules = _modules_after(f'from reconciler_specs.load import load_text\nload_text("{text}")')
    assert not modules & {"ruamel", "ruamel.yaml", "networkx", "rich", "httpx", "croniter", "deepdiff", "git", "typer"}


def _large(count: int) -> str:
    jobs = (
        f"""          job-{n}:
            name: Job {n}
            schedule: {{cron: "{n % 60} {n % 24} 1-7 * 1-5"}}
            prompt: |
              Do the thing number {n} and write
              a report about it.
            skills: [a, b]
            deliver: {{to: telegram, chat: "{n}"}}
            toolsets: [web, file]
"""
        for n in range(count)
    )
    head = "version: 1\nname: a\nhomes:\n  m:\n    harness: hermes\n    path: /x\n    profiles:\n      default:\n"
    return head + "        jobs:\n" + "".join(jobs)


def test_a_thousand_jobs() -> None:
    text = _large(1000)
    start = time.process_time()
    setup = load_text(text)
    assert len(setup.desired("m")) == 1001
    # 0.22 s where this was written; the budget is 0.35.
    assert time.process_time() - start < 2
