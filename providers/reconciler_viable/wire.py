"""The connector API: one credential, one origin, closed answers, and never more than the ceiling. Knows httpx.

No session is ever opened: a project has one slot, and taking it would throw out the connector that works there (S4-09).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from reconciler.errors import DoorLost, ProviderError
from reconciler.provider import HomeRef
from reconciler_shape.hiding import Hider
from reconciler_specs.shape import Json

from . import refusals, shapes
from .credential import token
from .errors import Odd, Refused, Unreachable

CEILING = 45.0
"""Seconds for one call, whatever the answer does meanwhile."""
LIMIT = 1 << 20  # bytes of an answer
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class Api:
    """One project of the platform. The credential is looked up for every call."""

    def __init__(self, home: HomeRef) -> None:
        self._options = home.options
        self._origin = str(home.options.get("url", ""))
        self._base = f"/connect/project/{home.options.get('project')}"
        self._seconds = float(home.options.get("seconds", CEILING))

    def offer(self) -> shapes.Offer:
        """The kits that can be applied. Raises ProviderError."""
        return self._get(f"{self._base}/kits", shapes.Offer, "what kits there are")

    def settings(self) -> shapes.Settings:
        """The project's settings. Raises ProviderError."""
        return self._get(f"{self._base}/branding", shapes.Settings, "the project's settings")

    def apply(self, kit: str, types: Sequence[str]) -> shapes.Applied:
        """Applies these types of a kit. Raises Refused, Unreachable, or DoorLost if nobody knows what came of it."""
        body = {"kit": kit, "types": list(types)}
        return self._post(f"{self._base}/kits", body, shapes.Applied, "the application of a kit")

    def save(self, patch: Mapping[str, str]) -> shapes.Settings:
        """Changes only what is in `patch`. Raises as `apply`."""
        return self._post(f"{self._base}/branding", dict(patch), shapes.Settings, "the change of settings")

    # -- calls

    def _get(self, path: str, model: type[shapes.M], what: str) -> shapes.M:
        try:
            return self._call("GET", path, None, model, what)
        except DoorLost as error:
            raise Unreachable(str(error)) from error

    def _post(self, path: str, body: dict[str, Json], model: type[shapes.M], what: str) -> shapes.M:
        try:
            return self._call("POST", path, body, model, what)
        except Odd as error:
            raise DoorLost(f"{error}; whether it was done is not known") from error

    def _call(self, method: str, path: str, body: dict[str, Json] | None, model: type[shapes.M], what: str) -> shapes.M:
        secret = token(self._options)
        hidden = Hider(b"", [secret])
        try:
            # In a thread of its own, so that it works wherever we are called from, an event loop too.
            with ThreadPoolExecutor(1) as pool:
                status, data = pool.submit(asyncio.run, self._exchange(method, path, body, secret)).result()
        except _UNSENT as error:
            raise Unreachable(f"{self._origin} cannot be reached; nothing was sent") from error
        except TimeoutError as error:
            raise DoorLost(f"{self._origin}: no answer within {self._seconds:g} s") from error
        except httpx.HTTPError as error:
            raise DoorLost(f"{self._origin}: the connection broke ({type(error).__name__})") from error
        try:
            return shapes.read(model, self._answer(method, status, data), what)
        except ProviderError as error:
            raise type(error)(hidden.text(str(error)), hint=error.hint) from None

    async def _exchange(self, method: str, path: str, body: dict[str, Json] | None, secret: str) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json", "Accept-Encoding": "identity"}
        # Neither a proxy nor a netrc of the environment: the credential goes to the one origin that the setup names.
        async with (
            asyncio.timeout(self._seconds),
            httpx.AsyncClient(
                base_url=self._origin,
                trust_env=False,
                follow_redirects=False,
                timeout=None,
                verify=self._origin.startswith("https:"),  # plain http is loopback, and needs no certificates loaded
            ) as client,
            # A POST with nothing to say sends {} all the same: without a body it is answered 415.
            client.stream(method, path, headers=headers, json=body if method == "POST" else None) as response,
        ):
            data = bytearray()
            async for chunk in response.aiter_raw():
                data += chunk
                if len(data) > LIMIT:
                    break
            return response.status_code, bytes(data)

    def _answer(self, method: str, status: int, data: bytes) -> Json:
        """The JSON of an answer. Raises Refused, Odd, DoorLost or Unreachable."""
        value: Any = None
        proper = len(data) <= LIMIT
        if proper:
            try:
                value = json.loads(data)
            except (ValueError, RecursionError):
                proper = False
        failure = shapes.failure(value)
        if 200 <= status < 300:
            if not proper:
                raise Odd(f"{self._origin}: the answer is not JSON, or more than {LIMIT >> 10} KiB")
            return value
        if refusals.known(failure) or status in (402, 428):
            raise Refused(refusals.words(status, failure))
        if status == 401:
            raise Refused(f"{self._origin} does not take the credential (401)", hint="sign in again; no other is tried")
        if status == 404:
            raise Refused(f"{self._origin} shows no such project to this account (404); that does not mean it is gone")
        if 300 <= status < 400:
            raise Refused(f"{self._origin} sends us elsewhere ({status}); the credential goes nowhere else")
        if status >= 500 or status in (408, 429):
            lost = DoorLost if method == "POST" else Unreachable
            raise lost(f"{self._origin} could not answer ({status})")
        raise Refused(refusals.words(status, failure))
