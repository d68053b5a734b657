"""The gateway client against a gateway on a bad day: every call ends as refused, lost, or not sent."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from openclaw.fake_gateway import TOKEN, Drop, Fake, Hang, No, Say, limited, reloading, served
from reconciler.errors import DoorLost, ProviderError
from reconciler_openclaw import gateway, rpc


def quietly(_: str) -> None:
    pass


def opened(fake: Fake, seconds: float = 5) -> rpc.Connection:
    return rpc.open_at(fake.port, rpc.Credential(TOKEN), quietly, seconds)


def test_a_call_comes_back_past_events(tmp_path: Path) -> None:
    with served(tmp_path) as fake:
        connection = opened(fake)
        assert connection.call("config.get")["hash"] == "hash-1"
        assert (connection.hello.version, connection.hello.boot) == ("2026.9.6", "boot-1")
        connection.close()


def test_a_refusal_keeps_code_and_words(tmp_path: Path) -> None:
    error = No("INVALID_REQUEST", "No such job.", details={"code": "CRON_JOB_NOT_FOUND"})
    with served(tmp_path, faults={"cron.get": [error]}) as fake:
        connection = opened(fake)
        with pytest.raises(rpc.Refusal, match=r"^No such job\.$") as found:
            connection.call("cron.get", {"id": "x"})
        assert (found.value.code, found.value.reason) == ("INVALID_REQUEST", "CRON_JOB_NOT_FOUND")
        connection.close()


@pytest.mark.parametrize(
    "fault", [Drop(), Say("no json"), Say("[1]"), Say('{"type": "res", "id": "1", "ok": 1}'), Say("[" * 100_000)]
)
def test_an_answer_that_is_none_is_lost(fault: Exception, tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [fault]}) as fake:
        connection = opened(fake)
        with pytest.raises(DoorLost, match=r"^cron\.add: the gateway"):
            connection.call("cron.add", {})
        connection.close()


def test_one_that_hangs_is_lost_in_time(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [Hang()]}) as fake:
        connection = opened(fake)
        with pytest.raises(DoorLost, match="did not answer in time"):
            connection.call("cron.add", {}, seconds=0.3)
        connection.close()


def test_a_limit_is_waited_for_and_told(tmp_path: Path) -> None:
    told: list[str] = []
    with served(tmp_path, faults={"cron.add": [limited(1), limited(0.05)]}) as fake:
        connection = rpc.open_at(fake.port, rpc.Credential(TOKEN), told.append)
        connection.call("cron.add", {})
        connection.close()
        assert len(fake.sent("cron.add")) == 3
    assert told == ["cron.add: the gateway is waited for, 1 s (its limit is 30 per 60s)"]


def test_no_wait_is_longer_than_patience(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [limited(rpc.PATIENCE + 1)]}) as fake:
        connection = opened(fake)
        with pytest.raises(rpc.Refusal):
            connection.call("cron.add", {})
        connection.close()


def test_no_wait_goes_beyond_the_end_of_the_run(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [limited(5)]}) as fake:
        end = time.monotonic() + 1
        connection = rpc.open_at(fake.port, rpc.Credential(TOKEN), quietly, end=end)
        with pytest.raises(rpc.Refusal, match="rate limit"):
            connection.call("cron.add", {})
        assert time.monotonic() < end + 1
        connection.close()


def test_a_refusal_that_is_not_called_retryable_is_final(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [No("UNAVAILABLE", "no", retryAfterMs=1)]}) as fake:
        connection = opened(fake)
        with pytest.raises(rpc.Refusal):
            connection.call("cron.add", {})
        connection.close()
        assert len(fake.sent("cron.add")) == 1


@pytest.mark.parametrize("method", sorted(rpc.READS))
def test_a_question_at_which_the_gateway_fails_for_a_moment_is_asked_again(method: str, tmp_path: Path) -> None:
    with served(tmp_path, methods={method: lambda _: "found"}, faults={method: [reloading(), reloading()]}) as fake:
        connection = opened(fake)
        assert connection.call(method) == "found"
        connection.close()
        assert len(fake.sent(method)) == 3


def test_a_question_at_which_the_gateway_fails_for_good_ends_in_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "MOMENT", 0.6)
    monkeypatch.setattr(rpc, "_SILENT", 0.1)
    told: list[str] = []
    with served(tmp_path, faults={"agents.list": [reloading()] * 100}) as fake:
        connection = rpc.open_at(fake.port, rpc.Credential(TOKEN), told.append)
        with pytest.raises(rpc.Refusal, match="was reloaded or disabled"):
            connection.call("agents.list")
        connection.close()
        assert 1 < len(fake.sent("agents.list")) < 5
    assert told == ["agents.list: the gateway cannot answer yet, and is asked again"]


def test_a_question_that_is_refused_is_not_asked_again(tmp_path: Path) -> None:
    with served(tmp_path, faults={"agents.list": [No("INVALID_REQUEST", "no")]}) as fake:
        connection = opened(fake)
        with pytest.raises(rpc.Refusal):
            connection.call("agents.list")
        connection.close()
        assert len(fake.sent("agents.list")) == 1


@pytest.mark.parametrize(
    "method",
    ["agents.create", "agents.delete", "agents.files.set", "config.patch", "cron.add", "cron.remove", "cron.update"],
)
def test_a_write_at_which_the_gateway_fails_is_never_sent_again(method: str, tmp_path: Path) -> None:
    assert method not in rpc.READS
    with served(tmp_path, methods={method: lambda _: None}, faults={method: [reloading()]}) as fake:
        connection = opened(fake)
        with pytest.raises(rpc.Refusal) as found:
            connection.call(method)
        connection.close()
        assert found.value.unsure and len(fake.sent(method)) == 1


def test_what_cannot_be_sent_has_not_happened(tmp_path: Path) -> None:
    with served(tmp_path, faults={"cron.add": [Drop()]}) as fake:
        connection = opened(fake)
        with pytest.raises(DoorLost):
            connection.call("cron.add", {})
        with pytest.raises(rpc.NotSent):
            connection.call("cron.add", {})
        assert len(fake.sent("cron.add")) == 1


def test_a_gateway_that_starts_is_asked_again(tmp_path: Path) -> None:
    error = No("UNAVAILABLE", "starting", retryable=True, retryAfterMs=50, details={"reason": "startup-sidecars"})
    with served(tmp_path, faults={"connect": [error, error]}) as fake:
        opened(fake).close()
        assert fake.connections == 3


def test_nobody_there_is_an_error_and_not_uncertain(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="cannot be reached") as found:
        rpc.open_at(rpc.free_port(), rpc.Credential(TOKEN), quietly)
    assert not isinstance(found.value, DoorLost)


def test_a_wrong_token_is_named_and_not_shown(tmp_path: Path) -> None:
    with served(tmp_path) as fake, pytest.raises(ProviderError, match="AUTH_TOKEN_MISMATCH") as found:
        rpc.open_at(fake.port, rpc.Credential("some-other-token-of-mine"), quietly)
    assert "some-other" not in str(found.value) + repr(rpc.Credential("some-other-token-of-mine"))


def test_a_gateway_of_another_home_is_refused(tmp_path: Path) -> None:
    with (
        served(tmp_path, state_dir="/somebody/else") as fake,
        pytest.raises(ProviderError, match="serves /somebody/else"),
    ):
        gateway.attach(fake.ref(), quietly)
    assert fake.calls == []


@pytest.mark.parametrize(
    ("auth", "dotenv"),
    [
        ("{token: '${GATE}'}", f"GATE={TOKEN}\n"),
        ("{token: {source: 'env', provider: 'default', id: 'GATE'}}", f"export GATE='{TOKEN}'\n"),
        ("{mode: 'token'}", f"OPENCLAW_GATEWAY_TOKEN={TOKEN}\n"),
    ],
)
def test_the_token_is_found_where_the_config_says(auth: str, dotenv: str, tmp_path: Path) -> None:
    with served(tmp_path, text=f"{{gateway: {{auth: {auth}}}}}") as fake:
        (fake.root / ".env").write_text(dotenv)
        connection = gateway.attach(fake.ref(), quietly)
        assert connection is not None
        connection.close()


def test_a_token_that_only_openclaw_can_look_up_is_named(tmp_path: Path) -> None:
    text = "{gateway: {auth: {token: {source: 'exec', provider: 'x', id: 'y'}}}}"
    with served(tmp_path, text=text) as fake, pytest.raises(ProviderError, match=r"auth\.token is kept in exec"):
        gateway.attach(fake.ref(), quietly)
