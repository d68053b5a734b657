"""Whatever a caller sends, a verb answers: done or refused in words, never with a traceback or half a change."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from native.lab import AT, tree
from reconciler_native.home import Home, init
from reconciler_native.operator import OPS, VERBS, Line, apply_operator

odd: st.SearchStrategy[Any] = st.sampled_from(
    [
        "", " ", "a", "default", "coder", "slack", "slack:C1", "a.b", "SOUL.md", "scripts/x", "0755", "30m",
        "0 8 * * *", "x" * 70, "../x", "\n", "\ud800", "\0", "$hidden", "${X}", 0, 1, -1, 1.5, True, False, None, [],
        {}, [None], ["a"], {"a": 1}, {"secret": "KEY"}, {"secret": "X"}, {"kind": "cron", "expr": "* * * * *", "tz": 5},
        {"kind": "interval", "minutes": 10**40}, {"kind": "once", "run_at": 5}, {"provider": "p", "model": "m"},
        [{"match": {"platform": "x"}, "profile": "default"}], [{"provider": "p", "model": "m"}],
        {"t": {"provider": "p", "model": "m"}}, {"harness": "codex"}, {"$hidden": "x"}, 10**400,
    ]
)  # fmt: skip
values = st.one_of(
    odd,
    st.recursive(
        odd, lambda x: st.lists(x, max_size=2) | st.dictionaries(st.text(max_size=3), x, max_size=2), max_leaves=3
    ),
)


@st.composite
def calls(draw: Any) -> tuple[str, dict[str, Any], str]:
    op = draw(st.sampled_from(OPS))
    names = sorted(VERBS[op].args)
    args = {name: draw(values) for name in draw(st.lists(st.sampled_from(names), unique=True))} if names else {}
    # Some of them get far enough to do something.
    likely = {
        "prompt": "x", "schedule": "30m", "id": "a", "name": "coder", "path": "a.b", "platform": "slack",
        "user_id": "1", "secret": {"secret": "KEY"}, "routes": [],
    }  # fmt: skip
    for name in names:
        if name in likely and name not in args and draw(st.booleans()):
            args[name] = likely[name]
    return op, args, draw(st.sampled_from(["default", "default", "coder", "nobody"]))


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(calls(), min_size=1, max_size=6))
def test_a_verb_answers_whatever_it_is_given(sequence: list[tuple[str, dict[str, Any], str]]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "home"
        init(root)
        (root / ".env").write_text("KEY=value-of-key\n")
        for op, args, profile in sequence:
            before = tree(root)
            answer = apply_operator(Home(root), op, args, profile, AT)
            json.dumps(answer).encode()
            if not answer["ok"]:
                assert answer["error"] and tree(root) == before
        assert apply_operator(Home(root), "state.get")["ok"]


@given(values)
def test_a_line_is_read_or_refused(raw: Any) -> None:
    from reconciler_native.errors import Refused

    for line in (
        raw,
        {"op": raw},
        {"op": "jobs.list", "args": raw},
        {"op": "jobs.list", "profile": raw},
        {"op": "x", "expect": raw},
    ):
        try:
            Line.read(line)
        except Refused as refused:
            assert str(refused)
