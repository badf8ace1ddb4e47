"""Makes dashboard-light.png and dashboard-dark.png: a campaign that runs, and a fault of it.

    python docs/pictures/dashboard.py

Needs Chromium (apt-get install chromium) and playwright.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PROGRAM = Path(__file__).parents[1] / "report.md"
HERE = Path(__file__).parent
SWARMTEST = [sys.executable, "-c", "from swarmtest.ui.cli import main; main()"]
SIZE = {"width": 1180, "height": 860}


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        campaign = begin_campaign(Path(place))
        words = [*SWARMTEST, "dashboard", "--port", "0", "--no-token"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout
            address = re.search(r"http://\S+", server.stdout.readline())
            assert address
            take(address[0])
        finally:
            for process in (campaign, server):
                process.send_signal(signal.SIGINT)
                process.communicate()


def begin_campaign(place: Path) -> subprocess.Popen[bytes]:
    """A campaign of the program that docs/report.md shows, with another one before it."""
    text = PROGRAM.read_text()
    for name, body in re.findall(r"^```python\n# file: (\S+)\n(.*?)^```", text, re.M | re.S):
        (place / name).write_text(body)
    run = "run test_disc.py -q --coverage line,branch"
    first = [*SWARMTEST, *run.split(), "--strategy", "all-on", "--tests", "1000"]
    subprocess.run(first, check=False, stdout=subprocess.DEVNULL)
    second = [
        *SWARMTEST,
        *run.split(),
        "--strategy",
        "coin",
        "--tests",
        "100000",
        "-j",
        "1",
        "--seed",
        "1",
    ]
    return subprocess.Popen(second, stdout=subprocess.DEVNULL)


def take(address: str) -> None:
    with sync_playwright() as run:
        browser = run.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        light = browser.new_page(viewport=SIZE, color_scheme="light")
        light.goto(f"{address}campaigns/2")
        settle(light)
        light.wait_for_timeout(6000)  # until there is a rate to show
        save(light, "dashboard-light.png")
        dark = browser.new_page(viewport=SIZE, color_scheme="dark")
        dark.goto(f"{address}campaigns/2/faults")
        settle(dark)
        dark.locator("tbody a").first.click()
        settle(dark)
        dark.locator(".computing").first.wait_for(state="detached", timeout=120_000)
        save(dark, "dashboard-dark.png")
        browser.close()


def settle(page: Page) -> None:
    """Until it is live, and nothing is being computed for the first time."""
    page.locator("#live.on").wait_for()
    page.locator("p.computing:not(.note)").first.wait_for(state="detached", timeout=120_000)


def save(page: Page, name: str) -> None:
    page.screenshot(path=HERE / name)
    print(HERE / name, (HERE / name).stat().st_size, "bytes")


if __name__ == "__main__":
    main()
