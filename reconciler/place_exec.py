"""A place behind a command prefix (`docker compose exec -T NAME`): nothing of ours has to be installed there."""

from __future__ import annotations

import base64
import inspect
import json
import os
import selectors
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import IO

from reconciler_specs.shape import Json

from . import place_reader
from .errors import ProviderError
from .place import Stat

# Reads its own source as the first line, then serves; nothing but this line stands in the process list.
_BOOT = 'import sys,json;exec(compile(json.loads(sys.stdin.readline()),"reader","exec"));serve()'
_FIRST_ANSWER = 30.0  # seconds: a prefix may have to wake something up
_ANSWER = 30.0


class ExecPlace:
    """`prefix` is the argv that leads there; `python` is the interpreter there that reads for us.

    One reading process is started at the first read and lives until `close`. A prefix that ends in `-c`, and
    ssh, hand their words to a shell there, so these get one quoted word. Raises ProviderError when the prefix
    does not answer, with what it printed.
    """

    local = False

    def __init__(self, prefix: Sequence[str], python: str = "python3") -> None:
        self._prefix = tuple(prefix)
        self._python = python
        self._reader: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._buffer = b""
        self._one = threading.Lock()
        self.name = "exec:" + shlex.join(self._prefix)

    def argv(self, words: Sequence[str]) -> list[str]:
        """The whole command line that runs `words` at the place."""
        shell = self._prefix[-1] == "-c" or PurePath(self._prefix[0]).name == "ssh"
        return [*self._prefix, shlex.join(words)] if shell else [*self._prefix, *words]

    def read(self, path: str, limit: int) -> bytes:
        return base64.b64decode(self._ask("read", path, limit))

    def stat(self, path: str) -> Stat | None:
        found = self._ask("stat", path)
        return None if found is None else Stat(**found)

    def list(self, path: str) -> list[str]:
        return [str(name) for name in self._ask("list", path)]

    def resolve(self, path: str) -> str:
        return str(self._ask("resolve", path))

    def which(self, program: str) -> str | None:
        found = self._ask("which", program)
        return None if found is None else str(found)

    def uid(self) -> int:
        return int(self._ask("uid"))

    def free(self, path: str) -> int:
        return int(self._ask("free", path))

    def writable(self, path: str) -> bool:
        return bool(self._ask("writable", path))

    def environ(self) -> Mapping[str, str]:
        return dict(self._ask("environ"))

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """As `Place.start`. Descriptors stay here: who needs a lock there takes it there."""
        clean = ["env", "-i", *(f"{name}={value}" for name, value in env.items())]
        return subprocess.Popen(
            self.argv([*clean, *argv]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def close(self) -> None:
        with self._one:
            self._stop()

    def _stop(self) -> None:
        reader, errors = self._reader, self._errors
        self._reader = self._errors = None
        self._buffer = b""
        if reader is not None:
            for pipe in (reader.stdin, reader.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue  # it was gone before us
            try:
                reader.wait(timeout=2)
            except subprocess.TimeoutExpired:
                reader.kill()
                reader.wait()
        if errors is not None:
            errors.close()

    def _ask(self, verb: str, *args: Json) -> Json:
        with self._one:
            first = self._reader is None
            try:
                if self._reader is None:
                    self._start_reader()
                self._send([verb, list(args)])
                answer = json.loads(self._line(_FIRST_ANSWER if first else _ANSWER))
            except (OSError, ValueError) as error:
                raise self._lost(error) from error
        if "errno" in answer:
            # OSError picks the subclass (FileNotFoundError …) from the number.
            raise OSError(answer["errno"], answer["words"], *[a for a in args[:1] if isinstance(a, str)])
        return answer["ok"]

    def _start_reader(self) -> None:
        # stderr goes to a file: a full pipe that nobody reads would stop the reader.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._reader = subprocess.Popen(
            self.argv([self._python, "-I", "-c", _BOOT]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._send(inspect.getsource(place_reader))

    def _send(self, message: Json) -> None:
        assert self._reader is not None and self._reader.stdin is not None
        self._reader.stdin.write(json.dumps(message).encode() + b"\n")
        self._reader.stdin.flush()

    def _line(self, seconds: float) -> bytes:
        assert self._reader is not None and self._reader.stdout is not None
        deadline = time.monotonic() + seconds
        fd = self._reader.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise OSError(f"no answer within {seconds:.0f} s")
                chunk = os.read(fd, 1 << 16)
                if not chunk:
                    raise OSError("it ended")
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _lost(self, error: Exception) -> ProviderError:
        said = ""
        if self._errors is not None:
            self._errors.seek(0)
            said = self._errors.read(2000).decode(errors="replace").strip()
        self._stop()
        if isinstance(error, ValueError):
            why = "it printed something else (a banner?)"
        else:
            why = getattr(error, "strerror", None) or str(error)
        return ProviderError(
            f"`{shlex.join(self._prefix)}` does not answer: {why}" + (f" ({said.splitlines()[-1]})" if said else ""),
            hint=f"{shlex.join(self.argv([self._python, '-V']))}  # it has to say a version",
        )
