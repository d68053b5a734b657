"""Stores that somebody edited by hand: read without a traceback, changed without a loss, or refused naming the file."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from native.lab import AT
from reconciler.observe import Wanted
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler_native import record
from reconciler_native.home import Home, init
from reconciler_native.operator import apply_operator
from reconciler_native.provider import NativeProvider
from reconciler_shape.record import MARKER

odd: st.SearchStrategy[Any] = st.sampled_from(
    [
        None, "", "a", " ", 0, -1, 1.5, True, False, [], {}, ["a"], [1], [{}], {"a": 1}, {"kind": "cron"},
        {"kind": "once"}, {"kind": "cron", "expr": "0 0 L * *"},
        {"kind": "cron", "expr": "0 8 * * *", "tz": "No/Where"},
        {"kind": "interval"}, {"kind": "interval", "minutes": 0}, {"kind": "interval", "minutes": 5},
        {"kind": "once", "run_at": "2031-01-01"}, {"times": "x"}, {"times": 1, "completed": 3}, {"intent": 5},
        {"platform": "slack"}, "slack:C1", "all", "slack,matrix", "2026-13-01", "2031-02-03T04:05:06",
    ]
)  # fmt: skip
fields = st.sampled_from([*record.ORDER[1:], "failure_deliver", "host", "monitor_url", MARKER, "unknown"])
records = st.lists(st.dictionaries(fields, odd, max_size=6), max_size=3)
config = st.dictionaries(
    st.sampled_from(["model", "fallback_providers", "auxiliary", "platforms", "gateway", "timezone", "provider", "x"]),
    odd,
    max_size=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records, config, odd)
@example([{"schedule": "every 5m", "prompt": 5, "skills": "a", "name": 7}], {"platforms": {"slack": 5}}, {"gh": 1})
def test_odd_records_are_read_and_the_others_kept(found: list[dict[str, Any]], raw: dict[str, Any], hooks: Any) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "home"
        init(root)
        jobs = [{"id": f"j{n}", **item} for n, item in enumerate(found)]
        store = root / "cron" / "jobs.json"
        store.write_text(json.dumps({"jobs": jobs, "updated_at": None}))
        (root / "config.yaml").write_text(json.dumps({"_config_version": 33, **raw}))
        (root / "webhook_subscriptions.json").write_text(json.dumps(hooks if isinstance(hooks, dict) else {"x": hooks}))
        home, provider = Home(root), NativeProvider()
        ref = HomeRef("main", "native", LocalPlace(), str(root.resolve()), {"$key": "11" * 32})
        seen = provider.observe(ref, Wanted(everything=True))
        for thing in seen.all():
            json.dumps(provider.express(thing, seen))
        json.dumps(apply_operator(home, "state.get"))
        assert len(apply_operator(home, "jobs.list")["result"]["jobs"]) == len(jobs)
        for job in jobs:
            for op in ("jobs.get", "jobs.pause", "jobs.resume", "jobs.run"):
                assert isinstance(apply_operator(home, op, {"id": job["id"]}, at=AT)["ok"], bool)
            for change in ({"prompt": "x"}, {"schedule": "every 5m"}, {"deliver": "local", "name": "n", "repeat": 2}):
                answer = apply_operator(home, "jobs.update", {"id": job["id"], **change}, at=AT)
                assert answer["ok"] or answer["error"]
        now = json.loads(store.read_text())["jobs"]
        # What nobody models is as it was.
        assert [item.get("unknown") for item in now] == [item.get("unknown") for item in jobs]
        model = {"provider": "p", "model": "m"}
        more: list[tuple[str, dict[str, Any]]] = [
            ("inference.set", {"default": model, "fallbacks": [model], "auxiliary": {"t": model}}),
            ("channels.set", {"platform": "slack", "extra": {"port": 1}}),
            ("access.admin_add", {"platform": "slack", "user_id": "1"}),
            ("routes.set", {"routes": [{"match": {"platform": "x"}, "profile": "default"}]}),
        ]
        for op, args in more:
            assert isinstance(apply_operator(home, op, args, at=AT)["ok"], bool)
