"""The orchestrator's own answers to 73 lines, as measured on its package 0.1.2, beside ours (S0-47).

The file was recorded from the package's `applyOperator` at 2026-12-01T08:00:00Z on an empty home named /HOME.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from native.lab import AT
from reconciler_native.home import Home
from reconciler_native.operator import apply_operator

_FILE = Path(__file__).parent / "transcripts" / "orchestrator_0.1.2.jsonl"
LINES = [json.loads(line) for line in _FILE.read_text().splitlines()]
# Ours name the arguments that were given, and where a deleted profile lies.
OURS = {"ran", "trash"}


def test_the_same_lines_have_the_same_answers(home: Path) -> None:
    same_words = 0
    for line in LINES:
        ours: Any = apply_operator(Home(home), line["op"], line["args"], line["profile"], AT)
        ours = json.loads(json.dumps(ours).replace(str(home), "/HOME"))
        theirs = line["answer"]
        assert ours["ok"] is theirs["ok"], (line, ours)
        if theirs["ok"]:
            assert {k: v for k, v in ours["result"].items() if k not in OURS} == {
                k: v for k, v in theirs["result"].items() if k not in OURS
            }, line
        same_words += ours == theirs
    assert len(LINES) == 73
    assert same_words >= 54  # the others say more than the orchestrator does, or do not repeat a value
