"""The same operator lines to the real orchestrator and to a native home: the same answers, but for the named rows.

`lines.jsonl` holds the lines, home by home. A line with a `row` must be answered otherwise by the two, and the row
must stand in the table of deliberate differences (docs/providers/native.md); every other line must not. Compared are
the exit code (done, refused, no such verb), all that a result says but its sentence, and of a refusal its class: the
`class` of the line, the field or subject that is refused, has to stand in the sentence of each that refuses.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from native import lab as ours
from native.lab import ROOT
from orchestrator import lab as theirs
from reconciler_native.home import init
from reconciler_native.operator import OPS
from reconciler_native.program import operate

pytestmark = pytest.mark.orchestrator

AT = "2026-12-01T08:00:00.000Z"
Line = Mapping[str, Any]
_ROWS = re.compile(r"^\| ((?:[^|`]|`[^`]*`)+?) \|", re.MULTILINE)
# Sentences for a person, and where a deleted profile lies, which only ours tells.
WORDS = {"ran", "trash"}
TIMES = {"next_run_at", "created_at", "run_at"}


def homes() -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for text in (Path(__file__).parent / "lines.jsonl").read_text("utf-8").splitlines():
        line = json.loads(text)
        if "home" in line:
            lines = found[line["home"]] = []
        else:
            lines.append(line)
    return found


HOMES = homes()
LINES = [line for lines in HOMES.values() for line in lines]


def differences() -> set[str]:
    page = (ROOT / "docs" / "providers" / "native.md").read_text("utf-8")
    section = page.partition("## Deliberate differences")[2].partition("\n## ")[0]
    return set(_ROWS.findall(section))


def test_there_are_enough_lines_and_each_difference_is_a_row() -> None:
    named = {str(line["row"]) for line in LINES if "row" in line}
    assert len(LINES) - sum("row" in line for line in LINES) >= 80
    assert len(named) >= 15
    assert named <= differences()


class Refusal(NamedTuple):
    code: int
    said: str


def essence(code: int, answer: Any, home: Path, *, timeless: bool = False) -> Any:
    """What has to agree: the exit code, and of what was done the result without its sentence; or a Refusal."""
    if not answer.get("ok"):
        return Refusal(code, str(answer.get("error") or answer.get("message")))
    result = json.loads(json.dumps(answer["result"]).replace(str(home), "/HOME"))
    found = {key: value for key, value in result.items() if key not in WORDS}
    return code, _timeless(found) if timeless else found


def _timeless(value: Any) -> Any:
    """Moments of a running clock only as being there or not."""
    if isinstance(value, dict):
        return {key: bool(item) if key in TIMES else _timeless(item) for key, item in value.items()}
    return value


def sent(line: Line, home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(line["args"]).replace("/HOME", str(home)))
    return found


def check(line: Line, real: Any, native: Any) -> None:
    refusals = [answer for answer in (real, native) if isinstance(answer, Refusal)]
    assert bool(refusals) is ("class" in line), f"a class is what a refused line has, and no other: {line}"
    for refusal in refusals:
        assert str(line["class"]).lower() in refusal.said.lower(), f"refused for another reason: {line}, {refusal}"
    real, native = (answer.code if isinstance(answer, Refusal) else answer for answer in (real, native))
    if "row" in line:
        assert real != native, f"no longer a difference: {line}"
    else:
        assert real == native, line


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (("prompt is required", "schedule is required"), "refused for another reason"),
        (("schedule is required", "prompt is required"), "refused for another reason"),
        (("prompt is required", None), "jobs.create"),
        ((None, None), "what a refused line has"),
    ],
)
def test_a_refusal_for_another_reason_does_not_agree(said: tuple[str | None, str | None], why: str) -> None:
    line = {"op": "jobs.create", "args": {}, "class": "prompt"}
    check(line, Refusal(1, "the prompt is missing"), Refusal(1, "Prompt is required"))
    with pytest.raises(AssertionError, match=why):
        check(line, *(Refusal(1, words) if words else (0, {}) for words in said))


@pytest.mark.parametrize("name", HOMES)
def test_cold_verbs_agree(name: str, tmp_path: Path) -> None:
    real, native = theirs.make(tmp_path / "real"), tmp_path / "native"
    assert init(native)
    for line in HOMES[name]:
        words = ["--profile", line.get("profile", "default"), "--at", line.get("at", AT), "--json"]
        answers = []
        for home, run in ((real, theirs.run), (native, ours_cold)):
            code, answer = run(line["op"], "--root", str(home), *words, json.dumps(sent(line, home)))
            answers.append(essence(code, answer, home))
        check(line, *answers)


def ours_cold(op: str, *words: str) -> tuple[int, dict[str, Any]]:
    """The native cold door; in this process, but for a word that the command line itself has to know."""
    if op not in OPS:
        return ours.native(op, *words)
    _, root, _, profile, _, at, _, text = words
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = operate(op, Path(root), profile, at, text, "cold")
    return code, json.loads(out.getvalue())


def test_sockets_agree() -> None:
    """But for the lines that set a clock: a daemon has its own."""
    for lines in HOMES.values():
        with theirs.short() as root:
            real, native = theirs.make(root / "real"), root / "native"
            assert init(native)
            with theirs.serving(real), ours.serving(native):
                for line in (line for line in lines if "at" not in line):
                    check(line, socket_says(line, real), socket_says(line, native))


def socket_says(line: Line, home: Path) -> Any:
    call = {"op": line["op"], "args": sent(line, home), "profile": line.get("profile", "default")}
    answer = theirs.ask(home, call)
    return essence(0 if answer["ok"] else 1, answer, home, timeless=True)
