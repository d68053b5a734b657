"""A stand-in for the platform's connector API, for tests and for trying a setup out: an ASGI app with strict schemas.

Three moods: `well-behaved`; `slow`, which does what it is told and says so too late; `hostile`, which plays tricks.
What it was told is in `seen`, and nothing is kept beyond the process.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import cycle
from typing import Any

TOKEN = "vib_" + "sandbox"
MOODS = ("well-behaved", "slow", "hostile")
PROJECTS = {
    "shop": "an ordinary project",
    "broke": "its account's balance is used up (402)",
    "consent": "somebody has to agree to the spending first (428)",
    "limited": "its account lacks the capability",
}
TRICKS = {
    "extra-key": ("GET", "a kit with a key that the connector does not have"),
    "no-kits": ("GET", "an answer without what was asked for"),
    "html": ("GET", "a page instead of an answer"),
    "echo-setting": ("GET", "the credential as a setting's value"),
    "echo-key": ("GET", "the credential as a key"),
    "endless": ("GET", "an answer that never ends"),
    "drip": ("GET", "an answer letter by letter"),
    "redirect": ("GET", "a way to somewhere else"),
    "not-found": ("GET", "no such project"),
    "no-warnings": ("POST", "an answer with a part missing"),
    "wrote-nothing": ("POST", "a yes that names nothing"),
    "said-yes": ("POST", "a yes to what was not done"),
    "echo-error": ("POST", "a refusal with the credential in it"),
    "cut": ("POST", "a connection that ends in the middle"),
    "broken": ("POST", "an error of the platform's own"),
}
"""Each trick: the calls that it is played on, and what it is."""

_STATUSES = [
    {"key": "todo", "label": "To do", "intrinsic": "planned"},
    {"key": "doing", "label": "Doing", "intrinsic": "in-progress"},
    {"key": "done", "label": "Done", "intrinsic": "closed"},
]
KITS = [
    {
        "id": "project",
        "kind": "work",
        "title": "Project",
        "purpose": "Work in a workspace.",
        "container": {"key": "workspace", "label": "Workspace"},
        "types": [{"key": key, "label": key.title(), "flow": "work"} for key in ("task", "bug", "idea")],
        "flows": [{"key": "work", "label": "Work", "statuses": _STATUSES}],
    },
    {
        "id": "helpdesk",
        "kind": "support",
        "title": "Help desk",
        "purpose": "Requests until they are answered.",
        "container": {"key": "desk", "label": "Desk"},
        "types": [{"key": "ticket", "label": "Ticket", "flow": "answer"}],
        "flows": [{"key": "answer", "label": "Answer", "statuses": _STATUSES}],
    },
]
_URL = re.compile(r"https://[^\s@/]+(/\S*)?\Z|/(?!/)\S*\Z")
_RULES: dict[str, Callable[[str], bool]] = {
    "copyright": lambda text: 0 < len(text) <= 200,
    "organizationName": lambda text: 0 < len(text) <= 120,
    "termsUrl": lambda text: len(text) <= 2048 and bool(_URL.match(text)),
    "privacyUrl": lambda text: len(text) <= 2048 and bool(_URL.match(text)),
    "googleTag": lambda text: text == "" or (len(text) <= 32 and text.startswith(("GTM-", "G-", "GT-", "AW-", "DC-"))),
}
_PERSON = {
    "broke": (402, "ConnectOutOfCredits", "viable-connect:out-of-credits:12|3|https://owlmeans.com/billing"),
    "consent": (
        428,
        "ConnectConsentRequired",
        "viable-connect:consent-required:https://owlmeans.com/consent/7|2031-02-03",
    ),
    "limited": (403, "CapabilityRequired", "capability-required:planning-kits"),
}
Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class _No(Exception):
    """A refusal: status, class and code."""


class Sandbox:
    """The app. `seconds` is how late a slow answer is; `trick` is the one that a hostile one plays, each in turn if "".

    `seen` has every call as (method, path, body or None); `settings` and `applied` are what the projects hold.
    """

    def __init__(self, mood: str = "well-behaved", *, seconds: float = 60.0, trick: str = "") -> None:
        self.mood, self.seconds = mood, seconds
        self._tricks = cycle([trick] if trick else list(TRICKS))
        self.seen: list[tuple[str, str, Any]] = []
        self.settings: dict[str, dict[str, str]] = {
            name: {
                "copyright": "© 2031",
                "organizationName": "Shop Ltd",
                "termsUrl": "/terms",
                "privacyUrl": "/privacy",
            }
            for name in PROJECTS
        }
        self.applied: dict[str, list[tuple[str, str]]] = {name: [] for name in PROJECTS}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"{scope['type']} is not served here")
        method, path = scope["method"], scope["path"]
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        data = await _body(receive)
        trick = next(self._tricks) if self.mood == "hostile" else ""
        trick = trick if trick and TRICKS[trick][0] == method else ""
        try:
            status, answer = 200, self._answer(method, path, headers, data, trick)
        except _No as no:
            status, answer = no.args[0], {"type": no.args[1], "message": no.args[2]}
        if self.mood == "slow" and method == "POST":
            await asyncio.sleep(self.seconds)
        await self._send(send, status, answer, trick, headers.get("authorization", "").removeprefix("Bearer "))

    def _answer(self, method: str, path: str, headers: dict[str, str], data: bytes, trick: str) -> Any:
        body = None
        if method == "POST":
            if not headers.get("content-type", "").startswith("application/json"):
                raise _No(415, "UnsupportedMediaType", "Unsupported Media Type")
            try:
                body = json.loads(data)
            except ValueError:
                raise _No(400, "BadRequest", "the body is not JSON") from None
        self.seen.append((method, path, body))
        if headers.get("authorization") != f"Bearer {TOKEN}":
            raise _No(401, "AuthenFailed", "api:auth:guard:auth-token")
        if "session" in path:
            raise _No(409, "SessionSuperseded", "the project's one session was taken over")
        if method == "POST" and not isinstance(body, dict):
            raise _No(400, "BadRequest", "an object is expected")
        found = re.fullmatch(r"/connect/project/([^/]+)/(kits|branding)", path)
        if found is None or found[1] not in PROJECTS or trick == "not-found":
            raise _No(404, "ProjectNotFound", "viable-project:not-found")
        project, what = found[1], found[2]
        if method == "GET":
            return {"kits": KITS} if what == "kits" else dict(self.settings[project])
        assert body is not None
        if project in _PERSON:
            raise _No(*_PERSON[project])
        return (self._apply if what == "kits" else self._save)(project, body, trick)

    def _apply(self, project: str, body: dict[str, Any], trick: str) -> Any:
        kit = next((kit for kit in KITS if kit["id"] == body.get("kit")), None)
        types = body.get("types")
        texts = types is None or (isinstance(types, list) and all(isinstance(item, str) for item in types))
        if set(body) - {"kit", "types"} or not body.get("kit") or not texts:
            raise _No(400, "BadRequest", "the body is not {kit, types?}")
        keys = [item["key"] for item in kit["types"]] if kit is not None else []  # type: ignore[index]
        wanted = keys if types is None else types
        if kit is None or not set(wanted) <= set(keys):
            raise _No(400, "KitUnknown", f"viable-kit:unknown:{body['kit']}")
        have = self.applied[project]
        new = [item for item in wanted if (body["kit"], item) not in have]
        left = [item for item in wanted if item not in new]
        if trick in ("wrote-nothing", "said-yes"):
            return {"applied": new if trick == "said-yes" else [], "skipped": [], "warnings": []}
        have += [(body["kit"], item) for item in new]
        warnings = ["the preview is rebuilt"] if new else []
        return {"applied": new, "skipped": left, "warnings": warnings}

    def _save(self, project: str, body: dict[str, Any], trick: str) -> Any:
        if not body or set(body) - set(_RULES):
            raise _No(400, "BadRequest", "the patch names no setting, or one that is none")
        for name, value in body.items():
            if not isinstance(value, str) or not _RULES[name](value):
                raise _No(400, "AuthenPayloadError", f"authen:payload:{name}")
        merged = {name: value for name, value in {**self.settings[project], **body}.items() if value}
        if trick not in ("wrote-nothing", "said-yes"):
            self.settings[project] = merged
        return merged

    async def _send(self, send: Send, status: int, answer: Any, trick: str, credential: str) -> None:
        """The answer, with the trick that is played on it."""
        kits = isinstance(answer, dict) and "kits" in answer
        headers = [(b"content-type", b"application/json")]
        if trick == "extra-key" and kits:
            answer = {"kits": [{**kit, "force": True} for kit in KITS]}
        elif trick == "echo-key" and kits:
            answer = {"kits": [{**kit, credential: True} for kit in KITS]}
        elif trick == "no-kits":
            answer = {}
        elif trick == "echo-setting" and not kits:
            answer = {**answer, "copyright": f"© {credential}"}
        elif trick == "no-warnings":
            answer = {"applied": [], "skipped": []}
        elif trick == "echo-error":
            status, answer = 400, {"type": "Odd", "message": f"no, {credential} is not for that"}
        elif trick == "broken":
            status, answer = 500, {"type": "ResilientError", "message": f"incident 7 of {credential}"}
        elif trick == "redirect":
            status, headers = 302, [*headers, (b"location", b"http://127.0.0.1:9/elsewhere")]
        data = b"<html>sign in</html>" if trick == "html" else json.dumps(answer).encode()
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if trick == "cut":
            await send({"type": "http.response.body", "body": data[:5], "more_body": True})
            raise ConnectionError("cut off, as it was told to")
        for _ in range(1000 if trick == "endless" else 0):  # to anybody who waits for the end
            await send({"type": "http.response.body", "body": b" " * 65536, "more_body": True})
        for letter in data if trick == "drip" else b"":
            await send({"type": "http.response.body", "body": bytes([letter]), "more_body": True})
            await asyncio.sleep(self.seconds)
        await send({"type": "http.response.body", "body": b"" if trick == "drip" else data})


async def _body(receive: Receive) -> bytes:
    data, more = b"", True
    while more:
        message = await receive()
        data += message.get("body", b"")
        more = message.get("more_body", False)
    return data
