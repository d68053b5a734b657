"""What the loop answers to those who watch it: by values, and over HTTP on loopback."""

from __future__ import annotations

import re
import socket
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from reconciler.errors import UsageError
from reconciler.gitops.metrics import HomeCounts, Standing, text, unhealthy
from reconciler.gitops.serve import address, served

GOOD = Standing("a" * 40, 0, False, 3, 1000.0, 1000.0, 0.25, homes={'odd"\\\n': HomeCounts(1, 2, 3, 4)})
# The text format 0.0.4: a comment, or a name with labels and a number.
_LABEL = r'[a-z]+="(?:[^"\\\n]|\\["\\n])*"'
_LINE = re.compile(rf"# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{{{_LABEL}(,{_LABEL})*\}})? -?[0-9.e+]+")


def test_metrics_are_in_the_text_format() -> None:
    for standing in (Standing(), GOOD):
        for line in text(standing).splitlines():
            assert _LINE.fullmatch(line), line
    said = text(GOOD)
    assert said.endswith("\n")
    assert 'reconciler_gitops_home_drift{home="odd\\"\\\\\\n"} 3' in said
    assert f'reconciler_gitops_revision_info{{revision="{"a" * 40}"}} 1' in said
    assert "reconciler_gitops_last_duration_seconds 0.25" in said
    names = re.findall(r"^# TYPE (\w+)", said, re.MULTILINE)
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("standing", "now", "words"),
    [
        (GOOD, 1100.0, ""),
        (GOOD, 1181.0, "no round has ended for 181 s"),
        (Standing(), 0.0, "no round has ended yet"),
        (Standing(working=True), 0.0, ""),
        (Standing(rounds=1, ended_at=1.0, code=4, failing=True), 2.0, "the last round ended with 4"),
        (Standing(rounds=1, ended_at=1.0, code=4), 2.0, ""),
        (Standing(rounds=1, ended_at=1.0, working=True), 1e6, ""),
    ],
)
def test_health(standing: Standing, now: float, words: str) -> None:
    assert unhealthy(standing, now, 60.0) == words


@pytest.mark.parametrize("said", ["127.0.0.1:0", "localhost:9190", "[::1]:9190", "127.8.8.8:1"])
def test_loopback_addresses(said: str) -> None:
    assert address(said)[1] == int(said.rpartition(":")[2])


@pytest.mark.parametrize(
    "said",
    [
        "0.0.0.0:9190",
        "[::]:9190",
        ":9190",
        "10.0.0.1:80",
        "example.org:80",
        "127.0.0.1",
        "127.0.0.1:x",
        "9190",
        "127.0.0.1:70000",
        "127.0.0.1:-1",
        "127.0.0.1:²",
    ],
)
def test_no_other_address_is_served(said: str) -> None:
    with pytest.raises(UsageError, match="--http"):
        address(said)


def get(port: int, path: str) -> tuple[int, str, str]:
    try:
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_what_is_answered() -> None:
    standing = [GOOD]
    with served(("127.0.0.1", 0), lambda: standing[0], lambda: 1000.0, 60.0) as port:
        assert get(port, "/healthz")[::2] == (200, "ok\n")
        status, kind, body = get(port, "/metrics")
        assert (status, kind, body) == (200, "text/plain; version=0.0.4; charset=utf-8", text(GOOD))
        standing[0] = Standing()
        assert get(port, "/healthz")[::2] == (503, "no round has ended yet\n")
        assert get(port, "/")[0] == 404
        with socket.create_connection(("127.0.0.1", port)) as raw:  # one that says nothing stops no other
            raw.sendall(b"\0\xff")
            assert get(port, "/healthz")[0] == 503
        with pytest.raises(UsageError, match="in use"), served(("127.0.0.1", port), Standing, lambda: 0.0, 1.0):
            raise AssertionError("twice")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)
