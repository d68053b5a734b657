"""Vault: values of secrets, fetched where the setup says when they may be; they go to the door, and nowhere else (L5).

What a plan knows of a value is its keyed digest. The only module that knows python-dotenv.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.secret import KEEP
from reconciler_specs.shape import SCALAR, Json

from .action import Action
from .observe import Unknown
from .redact import hide
from .secret import ASKED, SAID, SOURCE, UNCHECKED, words

SECONDS = 10.0  # for a command
LONGEST = 64 * 1024  # bytes of a value


class Value:
    """A secret's value. Neither printing nor comparing nor pickling it shows anything."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The value itself: for the door of the home that it is for."""
        return self._text

    def __repr__(self) -> str:
        return "Value(‹hidden›)"

    def __reduce__(self) -> str:
        raise TypeError("a secret's value is not saved")


class Vault:
    """The values of one run, each fetched once. `folder` is the setup's, where commands start; `stands` the one that
    relative files are from, where that is another (a copy of the setup has no file that git does not know).

    No program is started and no file outside of the folder is read before `permit` has named the source (L18): what
    may not be looked at is Unknown, with the reason.
    """

    def __init__(self, folder: Path, stands: Path | None = None) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._stands = Path(os.path.realpath(stands or folder))
        self._known: dict[str, Value | Unknown] = {}
        self._permitted: set[str] = set()
        self._turn = threading.Lock()  # homes are planned side by side, and a command is asked once

    def fetch(self, source: Json) -> Value | Unknown:
        """The value at a source (not `keep`), or why there is none."""
        key = _key(source)
        with self._turn:
            if key not in self._known:
                [(way, said)] = source.items()
                found = self._ways[way](said, key in self._permitted)
                self._known[key] = Value(found) if isinstance(found, str) else found
            return self._known[key]

    def permit(self, source: Json) -> None:
        """Lets a source be asked, whatever it is: somebody has agreed to the row that it is for."""
        if source == KEEP:
            return
        key = _key(source)
        with self._turn:
            if key not in self._permitted:
                self._permitted.add(key)
                self._known.pop(key, None)  # it may have been passed over before

    def may_ask(self, source: Json) -> bool:
        """Whether somebody has agreed to the source's being asked."""
        return source == KEEP or _key(source) in self._permitted

    def desired(self, resources: Mapping[Address, Resource], key: bytes) -> dict[Address, Resource]:
        """The resources with each secret as its digest under the home's `key`; the source stays in its options."""
        return {a: self._digested(r, key) if a.kind is Kind.SECRET else r for a, r in resources.items()}

    def values(self, resources: Mapping[Address, Resource], actions: Iterable[Action]) -> dict[Address, Value]:
        """The values for the rows of secrets among `actions`; `resources` are as `desired` gave them."""
        found = {}
        for address in (a.address for a in actions if a.address.kind is Kind.SECRET and a.address in resources):
            source = resources[address].options[SOURCE]
            value = self.fetch(source) if source != KEEP else None
            if isinstance(value, Value):
                found[address] = value
        return found

    def _digested(self, resource: Resource, key: bytes) -> Resource:
        source = resource.fields["value"]
        fields: dict[str, Json] = {"present": True}
        options: dict[str, Json] = {SOURCE: source, SAID: words(source, str(self._stands))}
        if source != KEEP:
            value = self.fetch(source)
            if isinstance(value, Value):
                fields["value"] = hide(value.reveal(), key)
            else:
                options |= {UNCHECKED: value.reason, ASKED: _key(source) in self._permitted}
        return replace(resource, fields=fields, shapes=dict.fromkeys(fields, SCALAR), options=options)

    # -- the ways; each gives the text, or Unknown ---------------------------------------------------------------

    @property
    def _ways(self) -> Mapping[str, Callable[[Any, bool], str | Unknown]]:
        return {"env": self._env, "file": self._file, "dotenv": self._dotenv, "command": self._command}

    def _env(self, name: str, _permitted: bool) -> str | Unknown:
        return os.environ.get(name) or Unknown(f"the environment has no {name}")

    def _file(self, name: str, permitted: bool) -> str | Unknown:
        text = self._read(name, permitted)
        if isinstance(text, Unknown):
            return text
        text = text.removesuffix("\n").removesuffix("\r")
        return text or Unknown(f"{name} is empty")

    def _dotenv(self, said: Mapping[str, str], permitted: bool) -> str | Unknown:
        text = self._read(said["file"], permitted)
        if isinstance(text, Unknown):
            return text
        import io

        from dotenv import dotenv_values

        found = dotenv_values(stream=io.StringIO(text), interpolate=False)
        return found.get(said["key"]) or Unknown(f"{said['file']} has no {said['key']}")

    def _command(self, argv: list[str], permitted: bool) -> str | Unknown:
        if not permitted:
            return Unknown(f"only apply asks {argv[0]}")
        return _asked(argv, self._folder)

    def _read(self, name: str, permitted: bool) -> str | Unknown:
        try:
            path = Path(name).expanduser()
            if not permitted and not Path(os.path.realpath(path)).is_relative_to(self._stands):
                return Unknown(f"only apply reads {name}, which lies outside the setup's folder")
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            return Unknown(f"{name}: {error.strerror}")
        except (RuntimeError, ValueError):  # a user that is not there, a NUL
            return Unknown(f"{name} is no path here")
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return Unknown(f"{name} is not a regular file")
        try:
            with os.fdopen(fd, "rb") as file:
                data = file.read(LONGEST + 1)
        except OSError as error:
            return Unknown(f"{name}: {error.strerror}")
        if len(data) > LONGEST:
            return Unknown(f"{name} is too large ({LONGEST} bytes at most)")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return Unknown(f"{name} is not UTF-8 text")


def _key(source: Json) -> str:
    """What tells two sources apart, whatever is in their words."""
    return json.dumps(source, sort_keys=True)


def _asked(argv: list[str], folder: Path) -> str | Unknown:
    """What a program says on stdout. Not a shell, nothing on stdin; what it says on stderr may hold anything, and is
    not shown. It and all that it has started are gone when this returns."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Unknown(f"{argv[0]!r} cannot be started: {getattr(error, 'strerror', None) or error}")
    assert process.stdout is not None
    data, ended = b"", False
    deadline = time.monotonic() + SECONDS
    try:
        with process.stdout as pipe:
            while len(data) <= LONGEST and (left := deadline - time.monotonic()) > 0:
                if select.select([pipe], [], [], left)[0]:
                    chunk = os.read(pipe.fileno(), LONGEST)
                    data += chunk
                    if not chunk:
                        ended = True
                        break
        if ended:
            process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        ended = False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if len(data) > LONGEST:
        return Unknown(f"{argv[0]} gave more than {LONGEST} bytes")
    if not ended:
        return Unknown(f"{argv[0]} gave no answer within {SECONDS:.0f} s")
    if process.returncode:
        return Unknown(f"{argv[0]} ended with {process.returncode}")
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        return Unknown(f"{argv[0]} gave no UTF-8 text")
    return text or Unknown(f"{argv[0]} gave nothing")
