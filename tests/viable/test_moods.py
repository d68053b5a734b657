"""The platform slow and hostile, and bad credentials: what is not known is said so, and no secret gets anywhere."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ProviderError
from reconciler.place import LocalPlace
from reconciler.provider import HomeRef
from reconciler_specs.errors import SpecError
from reconciler_specs.load import load_text
from reconciler_viable import PROVIDER
from reconciler_viable.sandbox import PROJECTS, TOKEN, TRICKS, Sandbox
from reconciler_viable.wire import Api
from viable.conftest import Make
from viable.lab import VARIABLE, Shop
from viable.test_whole import KITS, SETTINGS

LOOKS = sorted(name for name, (on, _) in TRICKS.items() if on == "GET")
WRITES = sorted(name for name, (on, _) in TRICKS.items() if on == "POST")


@pytest.mark.parametrize("token", ["", "  ", "sk-other", "vib_", "vib_a\nX: y", "vib_ü"])
def test_what_is_no_token_is_never_sent(shop: Shop, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4-01: nothing else is tried, and no request is made."""
    monkeypatch.setenv(VARIABLE, token)
    failed = shop.failed(shop.text(KITS))
    assert VARIABLE in failed and shop.app.seen == []
    assert len(token) < 5 or token not in failed


def test_a_token_that_is_not_taken_makes_the_home_unknown(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """S4-02: 401 says nothing of what is there; the next call looks the credential up again."""
    shop.converge(shop.text(KITS))
    monkeypatch.setenv(VARIABLE, "vib_revoked")
    assert "does not take the credential (401)" in shop.failed(shop.text(KITS))
    monkeypatch.setenv(VARIABLE, TOKEN)
    assert shop.rows(shop.text(KITS)) == {}


def test_a_late_answer_is_uncertain_and_the_next_run_is_told_it_is_there(make: Make) -> None:
    """S4-05, S4-19: a write without an answer is not known; applied again, the platform says that it has it."""
    shop = make("slow", late=20.0, seconds=1)
    text = shop.text(KITS)
    outcome, reason = shop.apply(text)["planning_kits/delivery"]
    assert (outcome, shop.app.applied["shop"]) == ("uncertain", [("project", "task")])
    assert "no answer within 1 s" in reason
    shop.app.mood = "well-behaved"
    assert str(shop.rows(text)["planning_kits/delivery"].tier) == "confirm"
    assert shop.apply(text)["planning_kits/delivery"] == ("applied", "there already: task")
    assert shop.rows(text) == {}


def test_a_setting_whose_answer_is_late_is_settled_by_looking(make: Make) -> None:
    shop = make("slow", late=20.0, seconds=1)
    done = shop.apply(shop.text(SETTINGS))
    assert {outcome for outcome, _ in done.values()} == {"applied"}
    assert shop.app.settings["shop"]["copyright"] == "© Mine"


@pytest.mark.parametrize("trick", LOOKS)
def test_a_hostile_look_fails_the_home_and_shows_no_secret(make: Make, trick: str) -> None:
    shop = make("hostile", trick, late=0.5, seconds=1)
    text = shop.text(SETTINGS + KITS, first="ask")
    if trick == "echo-setting":
        change = shop.rows(text)["settings/copyright"].changes[0]
        assert set(change.observed) == {"$hidden"}  # type: ignore[arg-type]
    else:
        failed = shop.failed(text)
        assert failed and TOKEN not in failed, failed
    (shop.root / "setup.yaml").write_text(text)
    for words in (["plan"], ["plan", "--json"], ["status"], ["show", "shop/settings/copyright"]):
        assert TOKEN not in shop.run(*words)
    assert TOKEN not in shop.kept()


@pytest.mark.parametrize("trick", WRITES)
def test_a_hostile_write_is_never_taken_for_done(make: Make, trick: str) -> None:
    shop = make("hostile", trick, seconds=2)
    done = shop.apply(shop.text(KITS))
    outcome, reason = done["planning_kits/delivery"]
    want = {"wrote-nothing": "refused", "echo-error": "refused", "said-yes": "applied"}.get(trick, "uncertain")
    # A lie about a kit cannot be told from the truth: nothing shows what a project has (decision 0019).
    assert outcome == want and TOKEN not in reason
    done = shop.apply(shop.text(SETTINGS))
    outcome, reason = done["settings/googleTag"]
    other = {"wrote-nothing": "not-applied", "said-yes": "not-applied", "echo-error": "refused"}
    assert outcome in (other.get(trick, "uncertain"), "applied") and TOKEN not in reason
    assert (outcome == "applied") == (shop.app.settings["shop"].get("googleTag") == "G-1"), "settled by looking"
    assert TOKEN not in shop.kept()


def test_the_whole_command_line(make: Make) -> None:
    """Exit codes, and a credential that is in no output, state or journal whatever happens."""
    shop = make()
    path = shop.root / "setup.yaml"
    path.write_text(shop.text(SETTINGS + KITS, first="ask"))
    said = shop.run("validate", code=0) + shop.run("plan", token="", code=4)
    said += shop.run("plan", code=0) + shop.run("apply", "--yes", code=3) + shop.run("adopt", "shop", code=0)
    said += shop.run("apply", "--yes", code=5)
    assert shop.posts() == []  # every write asks
    said += shop.run("plan", "--out", "p.json", code=0) + shop.run("apply", "--plan", "p.json", code=0)
    said += shop.run("plan", "--detailed-exitcode", code=0) + shop.run("plan", "--json", code=0)
    said += shop.run("status", code=0) + shop.run("show", "shop/planning_kits/delivery", code=0)
    said += shop.run("doctor") + shop.run("state", "list")
    shop.app.settings["shop"]["copyright"] = "© Theirs"
    said += shop.run("apply", "--yes", code=3) + shop.run("capture", "shop/settings/copyright", code=0)
    assert "© Theirs" in path.read_text()
    said += shop.run("plan", "--detailed-exitcode", code=0)
    shop.app.mood, shop.app.seconds = "slow", 20.0
    path.write_text(path.read_text().replace("types: [task]", "types: [task, bug]").replace("seconds: 5", "seconds: 1"))
    said += shop.run("apply", "shop/planning_kits/delivery", "--yes", code=6)
    assert TOKEN not in said + shop.kept()


def test_a_local_project_is_refused_with_the_reason(shop: Shop) -> None:
    (shop.root / "setup.yaml").write_text(shop.text("target: local"))
    assert "would throw that one out" in shop.run("plan", code=1)
    assert shop.app.seen == []


def test_one_project_is_one_home_however_its_url_is_written(shop: Shop) -> None:
    second = shop.text().partition("  shop:\n")[2].replace(f"url: {shop.url}", f"url: {shop.url}/")
    with pytest.raises(SpecError, match="one physical home"):
        load_text(shop.text() + "  again:\n" + second, "setup.yaml", shop.root)


def test_the_door_takes_its_own_keys_only() -> None:
    assert PROVIDER.options({"seconds": 45}) == []
    assert [w.split(":")[0] for w in PROVIDER.options({"seconds": 46, "x": 1})] == ["door", "door.seconds"]


def test_a_post_always_has_a_body(shop: Shop) -> None:
    """S4-04: without one the platform answers 415."""
    ref = HomeRef("shop", "viable", LocalPlace(), "", {"url": shop.url, "key": {"secret": VARIABLE}, "project": "shop"})
    with pytest.raises(ProviderError):
        Api(ref).save({})
    assert shop.posts() == [("/connect/project/shop/branding", {})]


def test_the_api_works_inside_somebodys_event_loop(shop: Shop) -> None:
    async def inside() -> dict[str, Any]:
        return dict(shop.rows(shop.text(first="ask")))

    assert asyncio.run(inside()) == {}


def _ask(
    app: Sandbox, method: str, path: str, body: bytes = b"{}", kind: bytes = b"application/json"
) -> tuple[int, Any]:
    sent: list[dict[str, Any]] = []

    async def call() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [(b"authorization", f"Bearer {TOKEN}".encode()), (b"content-type", kind)]
        await app({"type": "http", "method": method, "path": path, "headers": headers}, receive, send)

    asyncio.run(call())
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("kits", b'{"kit": "project", "types": null}', 200),
        ("kits", b'{"kit": "project", "force": true}', 400),
        ("kits", b'{"kit": ""}', 400),
        ("kits", b'{"kit": "project", "types": [1]}', 400),
        ("branding", b"{}", 400),
        ("branding", b'{"hideCredit": "yes"}', 400),
        ("branding", b'{"googleTag": ""}', 200),
        ("branding", b'{"copyright": ""}', 400),
        ("branding", b'{"privacyUrl": "//x"}', 400),
    ],
)
def test_the_sandbox_is_strict(path: str, body: bytes, status: int) -> None:
    assert _ask(Sandbox(), "POST", f"/connect/project/{next(iter(PROJECTS))}/{path}", body)[0] == status


def test_the_sandbox_wants_json() -> None:
    assert _ask(Sandbox(), "POST", "/connect/project/shop/kits", b"", b"text/plain")[0] == 415


def test_the_sandbox_is_a_program(tmp_path: Path) -> None:
    import subprocess
    import sys

    words = [sys.executable, "-m", "reconciler", "viable-sandbox", "--mood"]
    bad = subprocess.run([*words, "sad"], capture_output=True, text=True, timeout=60, check=False)
    assert bad.returncode == 1 and "well-behaved, slow, hostile" in bad.stderr
    with subprocess.Popen([*words, "slow"], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        url = program.stdout.readline().split()[0]
        assert url.startswith("http://127.0.0.1:") and program.stdout.readline() == f"token: {TOKEN}\n"
        program.terminate()
        assert program.wait(20) in (0, -15)
