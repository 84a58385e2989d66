"""The picture of the README, the first screen of the demo's report: python -m docs.pictures.report (needs Chromium)."""

import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.site.chromium import Browser, address

SIZE = {"width": 1110, "height": 980, "deviceScaleFactor": 1, "mobile": False}

with TemporaryDirectory() as folder:
    subprocess.run([sys.executable, "-m", "certifit", "demo", "--out", "demo"], cwd=folder, check=True)
    browser = Browser()
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.open(address(Path(folder) / "demo" / "without-sched_minutes" / "report.html"), SIZE["width"])
    browser.call("Emulation.setDeviceMetricsOverride", **SIZE)
    picture = browser.call("Page.captureScreenshot", format="png")["data"]
    browser.close()
Path(__file__).with_suffix(".png").write_bytes(b64decode(picture))
