"""Killed at any step of the git backend, the next run settles: on this machine, and on one that knows nothing yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler_state.files import Files
from reconciler_state.repository import GitError, Repository
from runners import Runner
from world import HEAD, home_text

FIRST = (
    "        settings: {a.b: 1}\n        jobs:\n"
    "          brief: {schedule: {every: 30m}, prompt: Write., deliver: local}\n"
)
SECOND = (
    "        settings: {a.b: 2}\n        jobs:\n"
    "          brief: {schedule: {every: 30m}, prompt: Write more., deliver: local}\n"
    "          other: {schedule: {every: 60m}, prompt: Sweep., deliver: local}\n"
)


class Killed(BaseException):
    """The process is gone: nothing handles this."""


@contextmanager
def killed_at(number: int) -> Iterator[list[str]]:
    """Dies at the `number`-th point: before each call of git, after it, and before each write of a file. The points
    passed are in the list."""
    passed: list[str] = []
    call, put = Repository._call, Files.put

    def point(name: str) -> None:
        if len(passed) >= number:
            raise Killed(name)
        passed.append(name)

    def _call(self: Repository, words: Any, *rest: Any) -> Any:
        point(f"before {words[0]}")
        answer = call(self, words, *rest)
        point(f"after {words[0]}")
        return answer

    def _put(self: Files, fd: int, data: bytes) -> None:
        point("write")
        put(self, fd, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Repository, "_call", _call)
        patch.setattr(Files, "put", _put)
        yield passed


def killed(runner: Runner, number: int) -> bool:
    """Applies, and dies at that point; False if the run was over before it."""
    with killed_at(number):
        try:
            runner.apply()
        except Killed:
            return True
    return False


def fresh(root: Path) -> Runner:
    one = Runner(root, "one")
    one.home()
    one.setup(HEAD + home_text(FIRST))
    return one


def steps_of(root: Path, second: bool) -> int:
    root.mkdir()
    one = fresh(root)
    if second:
        one.apply()
        one.setup(HEAD + home_text(SECOND))
    with killed_at(10**6) as passed:
        one.apply()
    return len(passed)


def journal_of(one: Runner) -> str:
    try:
        return one.show("journal/")
    except (GitError, ValueError):  # there is no branch yet, or no journal on it
        return ""


def check(one: Runner, *runners: Runner) -> None:
    """All runners see the same, nothing is to be done, and at most one thing per address is there and is ours."""
    for runner in runners:
        runner.setup(one.text)
        [home] = runner.plan().homes
        assert (home.failed, home.hold, [str(a.row) for a in home.actions]) == ("", None, [])
    [first, *others] = [runner.state() for runner in runners]
    for other in others:
        assert (other.lineage, other.serial, other.owners) == (first.lineage, first.serial, first.owners)
    names = [job["name"] for job in one.home().jobs().values()]
    assert sorted(names) == sorted(set(names))
    owned = {t.id for path, t in first.owned("solo").items() if "/jobs/" in path}
    assert owned == set(one.home().jobs())


@pytest.mark.parametrize("second", [False, True], ids=["first", "update"])
@pytest.mark.parametrize("who", ["one", "late"])
def test_killed_at_any_point(tmp_path: Path, second: bool, who: str) -> None:
    total = steps_of(tmp_path / "count", second)
    assert total > 40
    for number in range(total):
        root = tmp_path / str(number)
        root.mkdir()
        one = fresh(root)
        if second:
            one.apply()
            one.setup(HEAD + home_text(SECOND))
        assert killed(one, number), number
        before = journal_of(one)
        late = Runner(root, "late", one)
        late.setup(one.text)
        settler = one if who == "one" else late
        settler.apply()
        assert journal_of(one).startswith(before)
        check(one, one, late)


def test_killed_again_and_again(tmp_path: Path) -> None:
    """Every run of two runners in turn dies one point later than the last; in the end all is as declared."""
    one = fresh(tmp_path)
    two = Runner(tmp_path, "two", one)
    for number in range(0, 120, 3):
        runner = (one, two)[number % 2]
        runner.setup(HEAD + home_text((FIRST, SECOND)[number % 3 == 0 and number % 2]))
        killed(runner, number)
    for runner in (one, two):
        runner.setup(HEAD + home_text(SECOND))
        runner.apply()
    check(one, one, two)
