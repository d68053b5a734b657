"""No value of a secret comes out of a native home, and what is derived in it is nobody's drift."""

from __future__ import annotations

import json
import string
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from native.lab import AT, do, refused, tree
from reconciler.observe import Wanted
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler_native.home import Home, init
from reconciler_native.operator import apply_operator
from reconciler_native.provider import NativeProvider

secret = st.text(string.ascii_letters + string.digits + "-_+/=.~ é\"\\'", min_size=10, max_size=40).map(
    lambda text: "x7" + text.strip() + "q"
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(secret, st.booleans())
def test_whatever_a_secret_looks_like_no_answer_and_no_observation_has_it(value: str, pasted: bool) -> None:
    """S0-04, S0-12: it stands in `.env`, under a credential's key, and in the middle of texts."""
    with TemporaryDirectory() as folder:
        root = Path(folder) / "home"
        init(root)
        (root / ".env").write_text(f"DOOR_TOKEN={json.dumps(value) if value != value.strip() else value}\n")
        if pasted:
            (root / "config.yaml").write_text(f"model: {{default: a/b, api_key: {json.dumps(value)}}}\n")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("jobs.create", {"id": "a", "prompt": f"Say {value} twice.", "schedule": "1h", "name": value}),
            ("jobs.create", {"id": "a", "prompt": value, "schedule": value}),
            ("kits.apply", {"name": "k", "title": value, "source": f"file:{value}"}),
            ("kits.apply", {"name": "k", "source": value}),
            ("settings.set", {"path": "x.note", "value": f"({value})"}),
            ("settings.set", {"path": "x.api_key", "value": value}),
            ("channels.set", {"platform": "slack", "credentials": {"token": {"secret": "DOOR_TOKEN"}}}),
            ("files.set", {"path": value, "text": value}),
        ]
        reads = ("jobs.list", "kits.list", "profiles.list", "state.get")
        answers = [apply_operator(Home(root), op, args, at=AT) for op, args in calls]
        answers += [apply_operator(Home(root), op) for op in reads]
        seen = NativeProvider().observe(HomeRef("main", "native", LocalPlace(), str(root)), Wanted(everything=True))
        for shown in (json.dumps(answers, ensure_ascii=False), repr(seen)):
            for form in (value, json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]):
                assert form not in shown


def test_what_a_runtime_derives_is_never_touched_and_never_seen(home: Path) -> None:
    """S0-59: a worker's own home beside the profile (`codex/config.toml` with the server that is mounted)."""
    (home / "codex").mkdir()
    (home / "codex" / "config.toml").write_text('[mcp_servers.orchestrator]\ncommand = "x"\n')
    before = tree(home)
    ref = HomeRef("main", "native", LocalPlace(), str(home))
    seen = NativeProvider().observe(ref, Wanted(everything=True))
    assert "codex" not in repr(seen.things)
    do(home, "jobs.create", prompt="x", schedule="1h")
    assert {name: data for name, data in tree(home).items() if name.startswith("codex")} == {
        name: data for name, data in before.items() if name.startswith("codex")
    }


def test_an_error_shows_the_time_that_is_wrong_and_no_other_value(home: Path) -> None:
    assert '"61 * * * *"' in refused(home, "jobs.create", prompt="x", schedule="61 * * * *")
    words = refused(home, "jobs.create", prompt="x", schedule="every hour of my canary-0123456789")
    assert "canary" not in words
