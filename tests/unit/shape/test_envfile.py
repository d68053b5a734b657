"""Edits of `.env`: the line that counts, and not a byte of another."""

from __future__ import annotations

import pytest

from reconciler_shape import envfile


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [
        (b"", {"A": "1"}, b"A=1\n"),
        (b"# c\nB=2", {"A": "1"}, b"# c\nB=2\nA=1\n"),
        (b"A=0\nB=2\nA=9 # x\n", {"A": "1"}, b"A=0\nB=2\nA=1\n"),
        (b"export A='0'\r\nB=2\r\n", {"A": "1"}, b"export A=1\r\nB=2\r\n"),
        (b"  A = 0\n", {"A": "1"}, b"  A=1\n"),
        (b"A=0\nB=2\nexport A=9\n", {"A": None}, b"B=2\n"),
        (b"B=2\n", {"A": None}, b"B=2\n"),
        (b"AA=0\nBA=1\n#A=2\n", {"A": "1"}, b"AA=0\nBA=1\n#A=2\nA=1\n"),
        (b'M="x\ny"\nA=0\n', {"A": "1"}, b'M="x\ny"\nA=1\n'),
        (b'M="never closed\nA=0\n', {"A": "1"}, b'M="never closed\nA=1\n'),
        (b"X=\xff\xfe\nA=0\n", {"A": "1"}, b"X=\xff\xfe\nA=1\n"),
        ("\ufeffA=0\n".encode(), {"A": "1"}, "\ufeffA=1\n".encode()),
    ],
)
def test_edits(before: bytes, values: dict[str, str | None], after: bytes) -> None:
    assert envfile.edit(before, values) == after


@pytest.mark.parametrize(
    ("before", "values"),
    [
        (b'M="a\nA=0\n"\n', {"A": "1"}),
        (b'M="a\nA=0\n"\n', {"A": None}),
        (b"", {"A": "a b"}),
        (b"", {"A": 'a"b'}),
        (b"", {"A": "a#b"}),
        (b"", {"A": "${B}"}),
        (b"", {"not a name": "1"}),
    ],
)
def test_what_readers_would_tell_apart_in_two_ways(before: bytes, values: dict[str, str | None]) -> None:
    with pytest.raises(envfile.CannotEdit):
        envfile.edit(before, values)
