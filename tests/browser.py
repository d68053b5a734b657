"""A real Chromium for tests of pages: one page over the DevTools protocol, on loopback and without a network."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60.0


def program() -> str:
    """The browser on PATH. Without one the test is skipped and says why; in CI it fails, since CI installs one."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        words = "no Chromium on PATH (apt-get install chromium)"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    return found


class Page:
    """One tab. `asked` are the URLs that it asked for, `said` what it wrote to its console, errors included."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._session = ""
        self._last = 0
        self.asked: list[str] = []
        self.said: list[str] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol and its answer. Raises AssertionError with the browser's words."""
        self._last += 1
        sent: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            sent["sessionId"] = self._session
        self._socket.send(json.dumps(sent))
        while True:
            message = json.loads(self._socket.recv(timeout=SECONDS))
            if message.get("id") == self._last:
                assert "error" not in message, message
                return dict(message["result"])
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.asked.append(params["request"]["url"])
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.said.append(json.dumps(params))
            case "Page.javascriptDialogOpening":
                self.said.append(f"a dialog: {params['message']}")
            case "Page.loadEventFired":
                self._loaded = True

    def open(self, path: Path, width: int, *, dark: bool = False, scripts: bool = True) -> None:
        """Loads a file at `width` CSS pixels; under 600 as a phone does."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        self.asked, self.said, self._loaded = [], [], False
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._hear(json.loads(self._socket.recv(timeout=SECONDS)))

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def picture(self, path: Path, height: int | None = None) -> None:
        """A PNG of the whole page, or of its first `height` pixels."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], height or 8000), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with a profile in `folder`, ended by its own process."""
    argv = [
        program(),
        "--headless=new",
        "--no-sandbox",  # CI runs as root; the pages are ours
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--hide-scrollbars",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder / 'profile'}",
        "about:blank",
    ]
    with (folder / "stderr").open("wb") as log:
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            assert process.stderr is not None
            address = ""
            for line in process.stderr:
                log.write(line)
                if found := re.search(rb"DevTools listening on (ws://\S+)", line):
                    address = found[1].decode()
                    break
            assert address, "the browser did not start: " + (folder / "stderr").read_text("utf-8", "replace")
            with connect(address, max_size=None, proxy=None) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            process.wait(SECONDS)
            if process.stderr is not None:
                process.stderr.close()
