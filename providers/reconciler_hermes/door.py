"""The write door: one worker under Hermes's own interpreter per profile home, spoken to in lines of JSON."""

from __future__ import annotations

import contextlib
import importlib.resources
import json
import os
import posixpath
import selectors
import subprocess
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.action import Action, Row
from reconciler.errors import DoorLost, ProviderError
from reconciler.observe import Unknown
from reconciler.provider import Answer, Code, HomeRef, Step
from reconciler.restart import BEFORE
from reconciler_shape.hiding import Hider
from reconciler_specs.address import Kind

from . import gateways, home, interpreter, reading, steps

HELLO = 30.0  # seconds
STEP = 60.0
PER_OP = 0.1
CHUNK = 200  # operations; Hermes's job lock is held for less than 5 s
_GRACE = 5.0
_LONGEST = 16 << 20  # bytes of one answer; 200 refusals are some 100 KB

# Order matters: each may import those before it.
_SHARED = (
    "plain", "record", "block", "yamledit", "parts", "trash", "skillfolder", "envfile", "platforms", "channels",
    "channelwrites", "routes", "webhooks",
)  # fmt: skip
_MODULES = (
    "config", "files", "jobs", "profiles", "skills", "channels", "routes", "webhooks", "secrets", "boards", "boot",
)  # fmt: skip
_PACKAGES = (
    ("reconciler_shape", "reconciler_shape", _SHARED),
    ("reconciler_worker", f"{__package__}.worker", _MODULES),
)
_BOOT = """
import json,os,sys,types,zlib
f=open(0,'rb',buffering=0,closefd=False)
n=int(f.readline())
b=b''
while len(b)<n:
    c=f.read(n-len(b))
    if not c: sys.exit(3)
    b+=c
for package,name,source in json.loads(zlib.decompress(b)):
    p=sys.modules.get(package) or types.ModuleType(package); p.__path__=[]; sys.modules[package]=p
    m=types.ModuleType(package+'.'+name); m.__package__=package
    sys.modules[m.__name__]=m; setattr(p,name,m)
    exec(compile(source,'<'+m.__name__+'>','exec'),m.__dict__)
m.main()
"""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def sources() -> bytes:
    """The worker's whole program: it needs nothing of ours at its place."""
    program = []
    for package, found, names in _PACKAGES:
        folder = importlib.resources.files(found)
        program += [[package, name, (folder / f"{name}.py").read_text(encoding="utf-8")] for name in names]
    return json.dumps(program).encode()


def environment(ref: HomeRef, profile_home: str) -> dict[str, str]:
    """A clean environment for exactly one home. HOME is the home's own parent, so that neither `~/.hermes` nor
    `~/.local/bin` of somebody else is in reach."""
    around = ref.place.environ()
    return {
        "HOME": posixpath.dirname(ref.path.rstrip("/")) or "/",
        "PATH": around.get("PATH", _PATH),
        "HERMES_HOME": profile_home,
        "LANG": around.get("LANG", "C.UTF-8"),
        **({"TZ": around["TZ"]} if "TZ" in around else {}),
    }


class Worker:
    """One process. Everything that is not a proper answer in time raises DoorLost, with what was seen."""

    def __init__(self, ref: HomeRef, profile_home: str, python: str, lock_fd: int | None, hider: Hider) -> None:
        self._hider = hider
        self._buffer = bytearray()
        self._said = b""
        self._process: subprocess.Popen[bytes] = ref.place.start(
            [python, "-I", "-c", _BOOT],
            environment(ref, profile_home),
            () if lock_fd is None or not ref.place.local else (lock_fd,),
        )
        # Packed, since it has to fit into a pipe (64 KiB): an interpreter that reads nothing would hold us up.
        program = zlib.compress(sources())
        lock = lock_fd is None or not ref.place.local
        try:
            self._send(str(len(program)).encode() + b"\n" + program)
            # The lock may be waited for, so that it has the longer time.
            self.hello = self.ask({"module": "boot", "verb": "hello", "lock": lock, "root": ref.path}, HELLO)
            if not isinstance(self.hello, dict) or "version" not in self.hello:
                raise self._lost("a greeting of another form")
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: Mapping[str, Any], seconds: float) -> Any:
        self._send(json.dumps(request).encode() + b"\n")
        line = self._line(time.monotonic() + seconds, seconds)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._lost(f"an answer that is no JSON ({line[:200].decode(errors='replace')!r})") from error
        if not isinstance(answer, dict) or ("ok" not in answer and "error" not in answer):
            raise self._lost("an answer of another form")
        if "error" in answer:
            raise self._lost(str(answer["error"]))
        return answer["ok"]

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError as error:
            raise self._lost("it ended") from error

    def _line(self, deadline: float, seconds: float) -> bytes:
        out, err = self._process.stdout, self._process.stderr
        assert out is not None and err is not None
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            selector.register(err, selectors.EVENT_READ)
            seen = 0
            while self._buffer.find(b"\n", seen) < 0:
                seen = len(self._buffer)
                if seen > _LONGEST:
                    raise self._lost(f"an answer of more than {_LONGEST >> 20} MiB")
                left = deadline - time.monotonic()
                ready = selector.select(max(left, 0)) if left > 0 else []
                if not ready:
                    raise self._lost(f"no answer within {seconds:.0f} s")
                for key, _ in ready:
                    chunk = os.read(key.fd, 1 << 16)
                    if key.fileobj is err:
                        self._said = (self._said + chunk)[-4000:]
                        if not chunk:
                            selector.unregister(err)
                    elif chunk:
                        self._buffer += chunk
                    else:
                        raise self._lost("it ended")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return bytes(line)

    def results(self, answer: Any) -> list[dict[str, Any]]:
        """An answer to operations, if it has the form of one. Raises DoorLost."""
        codes = {code.value for code in Code}
        for item in answer if isinstance(answer, list) else [None]:
            if not isinstance(item, dict) or not isinstance(item.get("ref"), str) or item.get("code") not in codes:
                raise self._lost("an answer of another form")
        return list(answer)

    def _lost(self, what: str) -> DoorLost:
        said = self._hider.text(self._said.decode(errors="replace").strip())
        last = f" (it printed: {said.splitlines()[-1][:300]})" if said else ""
        return DoorLost(f"the worker under Hermes's interpreter: {self._hider.text(what)}{last}")

    def close(self) -> None:
        """Ends it by closing its stdin; it finishes what it is at. One that does not is killed: each of its
        writes is whole or not at all."""
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


class HermesDoor:
    """A home's write door: a profile's worker is started when the first step needs it, and ends with the door."""

    name = "hermes worker"

    def __init__(self, ref: HomeRef, python: str, lock_fd: int | None) -> None:
        self._ref, self._python, self._lock_fd = ref, python, lock_fd
        self._workers: dict[str, Worker] = {}
        self._ids: dict[str, str] = {}
        self._hider = reading.hider(ref)

    def begin(self) -> None:
        """Starts the root's worker, before anything is written down of what it will be asked. Raises DoorLost."""
        self._worker(home.DEFAULT, self._ref.path)

    def perform(self, step: Step) -> Sequence[Answer]:
        """One answer per action of the step, in its order. Raises DoorLost."""
        if step.actions[0].row is Row.RESTART:
            return [self._restart(action) for action in step.actions]
        call = steps.build(step)
        found: dict[str, dict[str, Any]] = {
            ref: {"code": "refused", "words": words} for ref, words in call.refused.items()
        }
        for start in range(0, len(call.ops), CHUNK):
            ops = call.ops[start : start + CHUNK]
            for result in self._ask(call, ops):
                found[result["ref"]] = result
                if result["code"] == "ok" and result.get("id"):
                    self._ids[result["ref"]] = result["id"]
        if step.actions[0].row is Row.DELETE and step.actions[0].address.kind is Kind.PROFILE:
            for action in step.actions:
                self._end(action.address.profile)
        return [self._answer(action.address, found) for action in step.actions]

    def deadline(self, step: Step) -> float:
        """Files are written when the worker answers; a gateway lets running turns end before it begins anew."""
        if step.actions[0].row is not Row.RESTART:
            return 0.0
        folders = [home.profile_dir(self._ref.path, name) for name in step.actions[0].carries[BEFORE]]
        return max(gateways.patience(self._ref.place, folder) for folder in folders)

    def _restart(self, action: Action) -> Answer:
        """Each gateway by the signal that Hermes restarts itself by."""
        wrong = []
        for name, start in action.carries[BEFORE].items():
            why = gateways.restart(self._ref, home.profile_dir(self._ref.path, name), start)
            wrong += [f"{name}: {why}"] if why else []
        return Answer(action.address, Code.REFUSED if wrong else Code.OK, words="; ".join(wrong))

    def _ask(self, call: steps.Call, ops: list[dict[str, Any]]) -> list[dict[str, Any]]:
        folder = home.profile_dir(self._ref.path, call.profile)
        self._learn(folder)
        if call.module == "profiles":
            # A profile that goes must not be the home of one of our own processes.
            for op in ops:
                if op.get("op") == "delete":
                    self._end(op["name"])
        request = {
            "module": call.module,
            "verb": call.verb,
            "home": folder,
            "ops": ops,
            "key": self._hider.key.hex(),
            "owner": reading.owner(self._ref),
            "ids": self._ids,
        }
        worker = self._worker(call.profile, folder)
        return worker.results(worker.ask(request, STEP + PER_OP * len(ops)))

    def _learn(self, folder: str) -> None:
        """What must not be shown if Hermes prints it."""
        env = home.env(self._ref.place, folder)
        if not isinstance(env, Unknown):
            self._hider = self._hider.with_secrets(env.secrets)

    def _worker(self, profile: str, folder: str) -> Worker:
        worker = self._workers.get(profile)
        if worker is None:
            if self._lock_fd is None or not self._ref.place.local:
                # Each takes the home's lock by itself, so that two would wait for each other.
                for name in list(self._workers):
                    self._end(name)
            worker = self._workers[profile] = Worker(self._ref, folder, self._python, self._lock_fd, self._hider)
        return worker

    def _end(self, profile: str) -> None:
        worker = self._workers.pop(profile, None)
        if worker is not None:
            worker.close()

    def _answer(self, address: Any, found: Mapping[str, Mapping[str, Any]]) -> Answer:
        result = found.get(address.path)
        if result is None:
            return Answer(address, Code.LOST, words="the worker did not answer for it")
        return Answer(
            address,
            Code(result["code"]),
            id=str(result.get("id") or ""),
            words=self._hider.text(str(result.get("words") or "")),
            inert=str(result.get("inert") or ""),
        )

    def close(self) -> None:
        for profile in list(self._workers):
            self._end(profile)


@contextlib.contextmanager
def opened(ref: HomeRef, lock_fd: int | None) -> Iterator[HermesDoor]:
    """Raises ProviderError if there is no interpreter that may be used, or if Hermes does not start under it."""
    found = interpreter.find(ref.place, ref.options)
    why = found.why or interpreter.unsafe(ref.place, found)
    if why:
        raise ProviderError(why)
    door = HermesDoor(ref, found.python, lock_fd)
    try:
        door.begin()
    except DoorLost as error:
        # Nothing has been asked of it yet, so that nothing is uncertain.
        raise ProviderError(str(error)) from error
    try:
        yield door
    finally:
        door.close()
