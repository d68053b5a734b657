"""Lines of `.env`: only those of the written names change."""

from __future__ import annotations

import pytest

from reconciler_openclaw import secrets
from reconciler_shape import dotenv


@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [
        ("", {"A": "x"}, "A=x\n"),
        ("# mine\nB=1\nA=old\n", {"A": "new"}, "# mine\nB=1\nA=new\n"),
        ("A=1\nB=2\nA=3\n", {"A": "x"}, "B=2\nA=x\n"),
        ("export A='old'\n\nB=2", {"A": None}, "\nB=2\n"),
        ("", {"A": "a b#c$d"}, "A='a b#c$d'\n"),
        ("", {"A": "it's"}, 'A="it\'s"\n'),
    ],
)
def test_put(text: str, values: dict[str, str | None], wanted: str) -> None:
    made = secrets.put(text, values)
    assert made == wanted
    entries = dict(entry for line in made.splitlines() if (entry := dotenv.entry(line)))
    assert all(entries.get(name) == value for name, value in values.items())


@pytest.mark.parametrize("value", ["a\nb", "both ' and \""])
def test_a_value_that_no_line_can_hold(value: str) -> None:
    with pytest.raises(ValueError, match="cannot stand in"):
        secrets.put("", {"A": value})
