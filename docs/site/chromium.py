"""Headless Chromium by its own protocol (JSON over two pipes): what a page asks for, says and looks like."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """The browser on this machine."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab."""

    def __init__(self) -> None:
        self.profile = mkdtemp(prefix="site-check-")
        to_browser, self.out = os.pipe()
        self.source, from_browser = os.pipe()
        command = [
            str(program()), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={self.profile}",
            "--remote-debugging-pipe",
        ]  # fmt: skip
        # The browser reads from descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command], pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events in between are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            part = os.read(self.source, 1 << 20)
            if not part:
                raise RuntimeError("Chromium ended.")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return dict(json.loads(message))

    def open(self, address: str, width: int) -> list[dict[str, Any]]:
        """Load a page at a width; the events of loading it."""
        self.events = []
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        return self.events

    def value(self, script: str) -> Any:
        """What a script gives; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")

    def close(self) -> None:
        """End the browser and remove its profile."""
        self.session = ""
        self.call("Browser.close")
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def address(path: Path) -> str:
    """A file as the browser names it."""
    return path.resolve().as_uri()
