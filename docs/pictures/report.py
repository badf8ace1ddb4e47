"""Makes report.png: a fault of the report that docs/report.md makes.

    python docs/pictures/report.py

Needs Chromium (apt-get install chromium chromium-driver) and selenium.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

PAGE = Path(__file__).parents[1] / "report.md"
PICTURE = Path(__file__).with_suffix(".png")
SWARMTEST = [sys.executable, "-c", "from swarmtest.ui.cli import main; main()"]


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        report = make_report(Path(place))
        PICTURE.write_bytes(screenshot(report.as_uri()))
    print(PICTURE, PICTURE.stat().st_size, "bytes")


def make_report(place: Path) -> Path:
    """Do what the page does."""
    text = PAGE.read_text()
    for name, body in re.findall(r"^```python\n# file: (\S+)\n(.*?)^```", text, re.M | re.S):
        (place / name).write_text(body)
    for seed, strategy in enumerate(("coin", "all-on")):
        run = f"run test_disc.py --strategy {strategy} --seed {seed} --tests 1000 -q"
        run += " --coverage line,branch"
        subprocess.run([*SWARMTEST, *run.split()], check=False, stdout=subprocess.DEVNULL)
    subprocess.run([*SWARMTEST, "report", "1", "2"], check=True)
    return place / "report.html"


def screenshot(address: str) -> bytes:
    options = webdriver.ChromeOptions()
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--hide-scrollbars",
        "--window-size=900,1200",
    ):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or ""
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.get(address)
        x, y, width, height = driver.execute_script(
            """const box = document.querySelector("#faults article").getBoundingClientRect();
            return [box.x + scrollX, box.y + scrollY, box.width, box.height]"""
        )
        clip = {"x": x - 8, "y": y - 8, "width": width + 16, "height": height + 16, "scale": 1}
        taken = driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True}
        )
        return base64.b64decode(taken["data"])
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
