"""Outbox: tells the targets of `notify:` what they have not been told yet. Nothing that fails here stops a run.

A target's file in the state folder holds what it was told and what still waits; it is written before anything is sent,
so a message may come twice (each has an id), and none is lost. Knows httpx.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from reconciler_specs.address import Address, selects
from reconciler_specs.notify import NotifyTarget, url
from reconciler_specs.values import Refusal
from reconciler_state.errors import StateError
from reconciler_state.files import Files
from reconciler_state.store import slug

from .notices import Notice
from .observe import Unknown
from .redact import scrub
from .vault import Vault

BATCH = 50  # notices in one message
KEPT = 500  # notices that wait for a target, the oldest go first
SECONDS = 5.0  # for one try
TRIES = 3
PATIENCE = 10.0  # seconds for one target and run, waits included
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})

Post = Callable[[str, Mapping[str, str], bytes], tuple[int, float]]
"""(URL, headers, body) → (status, seconds to wait that it asks for); status 0 if it could not be reached."""


def tell(
    targets: Mapping[str, NotifyTarget],
    setup: str,
    notices: Sequence[Notice],
    *,
    looked: Collection[str],
    ran: Collection[str],
    root: Path,
    vault: Vault,
    run: str = "",
    post: Post | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Tells every target what is new to it, and returns one sentence for each that could not be told.

    `looked` are the homes that `notices` of plans are about, `ran` those of runs: what was told of them and is over
    is forgotten, so that it is told again when it comes back. `root` is the state folder.
    """
    words = []
    for target in targets.values():
        path = root / "notify" / f"{slug(setup)}-{slug(target.name)}-{_short(setup, target.name)}.json"
        chosen = [n for n in notices if n.topic in target.on and _wanted(target, n)]
        if not chosen and not path.exists():
            continue  # nothing is made for a target that there is nothing to tell (L7)
        try:
            with _alone(path, pause):
                box = _Box(path)
                box.take(chosen, looked, ran, run)
                said = box.send(target, setup, vault, post or _post, pause)
        except StateError as error:
            said = str(error)
        if said:
            words.append(f"notify {target.name}: {scrub(said)}")
    return words


def _wanted(target: NotifyTarget, notice: Notice) -> bool:
    address = Address.parse(notice.address)
    return not target.only or any(selects(one, address) for one in target.only)


def _short(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:8]


class _Box:
    """What one target was told (`told`: key → mark) and what it is still to be told (`waiting`, oldest first)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files = Files()
        self._as_read = self._files.read(path) or b""
        self.told: dict[str, str] = {}
        self.waiting: list[dict[str, Any]] = []
        self.dropped = 0
        try:
            found = json.loads(self._as_read or b"{}")
            self.told = {str(k): str(v) for k, v in found.get("told", {}).items()}
            self.waiting = [n for n in found.get("waiting", []) if isinstance(n, dict)]
            self.dropped = int(found.get("dropped", 0))
        except (ValueError, AttributeError, TypeError, RecursionError):
            pass  # not what we wrote: it is told again, which is better than never

    def take(self, notices: Sequence[Notice], looked: Collection[str], ran: Collection[str], run: str) -> None:
        """Puts what is new behind what waits, and forgets what is over."""
        now = {n.key for n in notices}
        for key in [k for k in self.told if k not in now]:
            home, _, rest = key.partition("\n")
            if home in (ran if rest.endswith("\nrun") else looked):
                del self.told[key]
        for notice in notices:
            # What was applied is news each time; all else is told once for the value that it is about.
            if notice.topic != "applied" and self.told.get(notice.key) == notice.mark:
                continue
            if notice.topic != "applied":
                self.told[notice.key] = notice.mark
            ident = _short(notice.key, notice.mark, run, str(time.time_ns()))
            self.waiting.append({"id": ident, **notice.to_json()})
        over = len(self.waiting) - KEPT
        if over > 0:
            self.dropped += over
            del self.waiting[:over]
        self._write()

    def send(self, target: NotifyTarget, setup: str, vault: Vault, post: Post, pause: Callable[[float], None]) -> str:
        """Sends what waits, a batch at a time; why it could not, or ""."""
        until = time.monotonic() + PATIENCE
        while self.waiting:
            where = _where(target, vault)
            if isinstance(where, Unknown):
                return f"{where.reason}; {len(self.waiting)} wait"
            address, headers = where
            batch = self.waiting[:BATCH]
            body = json.dumps(_message(setup, batch, self.dropped), ensure_ascii=True).encode()
            said = _tried(post, address, headers, body, until, pause)
            if said:
                return f"not told ({said}); {len(self.waiting)} wait for the next run"
            del self.waiting[: len(batch)]
            self.dropped = 0
            self._write()
        return ""

    def _write(self) -> None:
        document = {"told": self.told, "waiting": self.waiting, "dropped": self.dropped}
        data = json.dumps(document, sort_keys=True, ensure_ascii=True, indent=1).encode() + b"\n"
        if data == self._as_read or (not self._as_read and not self.told and not self.waiting):
            return
        self._files.write(self._path, data)
        self._as_read = data


def _message(setup: str, batch: Sequence[Mapping[str, Any]], dropped: int) -> dict[str, Any]:
    """What is posted. `text` is for chat programs that show just that."""
    counts: dict[str, int] = {}
    for notice in batch:
        counts[notice["topic"]] = counts.get(notice["topic"], 0) + 1
    head = f"{setup}: " + ", ".join(f"{n} {topic}" for topic, n in sorted(counts.items()))
    lines = [f"{n['topic']}  {n['address']}{'#' + n['field'] if n.get('field') else ''}  {n['why']}" for n in batch]
    if dropped:
        lines.append(f"{dropped} older ones were dropped: too many waited")
    text = "\n".join([head, *lines[:20], *([f"and {len(lines) - 20} more"] if len(lines) > 20 else [])])
    return {"format": "reconciler.notify/1", "setup": setup, "text": text, "notices": list(batch)}


def _where(target: NotifyTarget, vault: Vault) -> tuple[str, Mapping[str, str]] | Unknown:
    address: Any = target.url.get("url")
    if address is None:
        value = vault.fetch(dict(target.url))
        if isinstance(value, Unknown):
            return value
        try:
            address = url(value.reveal().strip())
        except Refusal as refusal:
            return Unknown(f"the URL that it names is refused: {refusal.message}")
    headers = {"Content-Type": "application/json", "User-Agent": "agent-home-reconciler"}
    if target.bearer is not None:
        value = vault.fetch(dict(target.bearer))
        if isinstance(value, Unknown):
            return value
        headers["Authorization"] = f"Bearer {value.reveal()}"
    return str(address), headers


def _tried(
    post: Post, address: str, headers: Mapping[str, str], body: bytes, until: float, pause: Callable[[float], None]
) -> str:
    """Why a message could not be delivered, "" if it was. A refusal is final for this run; being busy is not."""
    wait = 0.25
    for turn in range(TRIES):
        status, asked = post(address, headers, body)
        if 200 <= status < 300:
            return ""
        said = f"it answered {status}" if status else "it cannot be reached"
        wait = max(asked, wait * 2)
        if (status and status not in _AGAIN) or turn == TRIES - 1 or time.monotonic() + wait > until:
            return said
        pause(wait)
    return said


def _post(address: str, headers: Mapping[str, str], body: bytes) -> tuple[int, float]:
    """In a thread of its own, so that it works wherever we are called from, an event loop too."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _exchange(address, headers, body)).result()


async def _exchange(address: str, headers: Mapping[str, str], body: bytes) -> tuple[int, float]:
    import httpx

    # Neither a proxy nor a netrc of the environment, no redirect: it goes where the setup says, and nowhere else.
    # Whatever the other side does, it has its seconds and no more.
    try:
        async with (
            asyncio.timeout(SECONDS),
            httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
            client.stream("POST", address, headers=dict(headers), content=body) as answer,
        ):
            asked = answer.headers.get("Retry-After", "")
            return answer.status_code, float(asked) if asked.isascii() and asked.isdigit() else 0.0
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError):  # ValueError: a header that cannot be sent
        return 0, 0.0


@contextmanager
def _alone(path: Path, pause: Callable[[float], None]) -> Iterator[None]:
    """One run at a time tells a target. Raises StateError if another does for too long."""
    files = Files()
    files.mkdir(path.parent)
    lock = path.with_suffix(".lock")
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(f"{lock}: {error.strerror}") from error
    try:
        until = time.monotonic() + PATIENCE * 2
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() > until:
                    raise StateError("another run is telling it, and does not end") from error
                pause(0.1)
        yield
    finally:
        os.close(fd)
