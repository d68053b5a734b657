"""Vault: values of secrets, fetched where the setup says when they may be; they go to the door, and nowhere else (L5).

What a plan knows of a value is its keyed digest. The only module that knows python-dotenv.
"""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from reconciler_specs.address import Address, Kind
from reconciler_specs.resource import Resource
from reconciler_specs.secret import KEEP
from reconciler_specs.shape import SCALAR, Json

from .action import Action
from .observe import Unknown
from .redact import hide
from .secret import SAID, SOURCE, UNCHECKED, words

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
    """The values of one run, each fetched once. `folder` is the setup's. Without `applying` no program is started and
    no file outside of the folder is read (L18): what cannot be looked at is Unknown, with the reason."""

    def __init__(self, folder: Path, *, applying: bool = False) -> None:
        self._folder = Path(os.path.realpath(folder))
        self.applying = applying
        self._known: dict[str, Value | Unknown] = {}
        self._turn = threading.Lock()  # homes are planned side by side, and a command is asked once

    def fetch(self, source: Json) -> Value | Unknown:
        """The value at a source (not `keep`), or why there is none."""
        key = words(source)
        with self._turn:
            if key not in self._known:
                [(way, said)] = source.items()
                found = getattr(self, f"_{way}")(said)
                self._known[key] = Value(found) if isinstance(found, str) else found
            return self._known[key]

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
        options: dict[str, Json] = {SOURCE: source, SAID: words(source, str(self._folder))}
        if source != KEEP:
            value = self.fetch(source)
            if isinstance(value, Value):
                fields["value"] = hide(value.reveal(), key)
            else:
                options[UNCHECKED] = value.reason
        return replace(resource, fields=fields, shapes=dict.fromkeys(fields, SCALAR), options=options)

    # -- the ways; each gives the text, or Unknown ---------------------------------------------------------------

    def _env(self, name: str) -> str | Unknown:
        return os.environ.get(name) or Unknown(f"the environment has no {name}")

    def _file(self, name: str) -> str | Unknown:
        text = self._read(name)
        if isinstance(text, Unknown):
            return text
        text = text.removesuffix("\n").removesuffix("\r")
        return text or Unknown(f"{name} is empty")

    def _dotenv(self, said: Mapping[str, str]) -> str | Unknown:
        text = self._read(said["file"])
        if isinstance(text, Unknown):
            return text
        import io

        from dotenv import dotenv_values

        found = dotenv_values(stream=io.StringIO(text), interpolate=False)
        return found.get(said["key"]) or Unknown(f"{said['file']} has no {said['key']}")

    def _command(self, argv: list[str]) -> str | Unknown:
        if not self.applying:
            return Unknown(f"only apply asks {argv[0]}")
        try:
            # Not a shell, nothing on stdin; what it says on stderr may hold anything, and is not shown.
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                cwd=self._folder,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Unknown(f"{argv[0]} gave no answer within {SECONDS:.0f} s")
        except OSError as error:
            return Unknown(f"{argv[0]} cannot be started: {error.strerror or error}")
        if done.returncode:
            return Unknown(f"{argv[0]} ended with {done.returncode}")
        return _text(done.stdout, argv[0])

    def _read(self, name: str) -> str | Unknown:
        path = Path(name).expanduser()
        if not self.applying and not Path(os.path.realpath(path)).is_relative_to(self._folder):
            return Unknown(f"only apply reads {name}, which lies outside the setup's folder")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            return Unknown(f"{name}: {error.strerror}")
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return Unknown(f"{name} is not a regular file")
        with os.fdopen(fd, "rb") as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            return Unknown(f"{name} is too large ({LONGEST} bytes at most)")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return Unknown(f"{name} is not UTF-8 text")


def _text(data: bytes, who: str) -> str | Unknown:
    """The answer of a program, without the end of its line."""
    if len(data) > LONGEST:
        return Unknown(f"{who} gave more than {LONGEST} bytes")
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        return Unknown(f"{who} gave no UTF-8 text")
    return text or Unknown(f"{who} gave nothing")
