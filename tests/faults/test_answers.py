"""Lost, late and wrong answers: looked at, never believed; `uncertain` at worst, and the next run is clean (L9–L11)."""

from __future__ import annotations

import time

import pytest

from faults.rig import SECOND, Rig, settled, trouble
from reconciler_hermes import door as doors

pytestmark = pytest.mark.hermes


WRONG = ("close", "garbage", "huge", "deep", "other", "codeless", "unknown-code", "none", "half")


@pytest.mark.parametrize("words", [WRONG[:4], WRONG[4:]], ids="+".join)
def test_wrong_answers_after_the_batch_was_written(rig: Rig, words: tuple[str, ...]) -> None:
    """L9, L10: the batch is in the store, its answer is not to be read: settled by looking, or `uncertain` (exit 6);
    never a crash, never exit 1, no token shown, and the next run is clean."""
    for number, word in enumerate(words):
        rig.setup(SECOND.replace("plants", f"plants-{number}").replace("long", f"{number}"))
        rig.arm("after-jobs", word)
        if word == "half":
            rig.arm("answered-jobs", "die")
        done = rig.full()
        rig.reached("after-jobs")
        assert (done.code in (0, 6), trouble(done)) == (True, []), (word, done.code, done.text)
        assert "sk-1234567890abcdefghijklmn" not in done.text
        rig.apply()
        settled(rig)
        (rig.hooks / "at-after-jobs").unlink()


def test_wrong_answers_before_anything_was_asked(rig: Rig) -> None:
    """L8, L10: a worker that does not even greet has done nothing: the home failed (exit 4), no intent is left."""
    rig.setup(SECOND)
    for word in ("deep", "other", "die"):
        rig.arm("after-hello", word)
        done = rig.full()
        assert (done.code, trouble(done)) == (4, []), (word, done.text)
        assert not rig.plan().homes[0].intents
    assert rig.full().code == 0
    settled(rig)


def test_an_answer_that_comes_too_late(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """L10: no answer in time is a lost one; what the worker does afterwards is found by the next run (in this
    process, so that the time may be short)."""
    monkeypatch.setattr(doors, "STEP", 0.5)
    monkeypatch.setattr(doors, "_GRACE", 0.2)
    rig.setup(SECOND.replace("150", "120").replace("little", "nothing"))
    rig.pipe()
    rig.arm("before-jobs", "wait")
    started = time.monotonic()
    found = {str(e.address): str(e.outcome) for e in rig.apply() if e.what == "outcome"}
    assert time.monotonic() - started < 20
    assert set(found.values()) == {"uncertain"}, found
    monkeypatch.undo()
    assert rig.full().code == 0
    settled(rig)


def test_a_flood_without_an_end_is_cut_off(rig: Rig) -> None:
    """L10: a worker that never ends its line takes neither the memory nor the time of this machine."""
    rig.setup(SECOND)
    rig.arm("after-jobs", "flood")
    started = time.monotonic()
    done = rig.full()
    assert time.monotonic() - started < 30
    assert done.code in (0, 6) and not trouble(done), done.text
    assert rig.full().code == 0
    settled(rig)
