"""The report in a real browser: with and without scripts, in the dark, on paper, on a phone."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="needs a browser: apt-get install chromium chromium-driver",
)
webdriver = pytest.importorskip("selenium.webdriver")
Command = Callable[..., subprocess.CompletedProcess[str]]


class Browser:
    """Chromium without a window, and what tests ask of it."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            "--window-size=1280,900",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(DRIVER)
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.execute_cdp_cmd("Network.enable", {})

    def open(self, file: Path) -> None:
        """Load a page anew, whatever is shown."""
        self.driver.get("about:blank")
        self.requests()
        self.driver.get(file.as_uri())
        # On a busy machine `get` may come back before the page is there, to its last section.
        deadline = time.monotonic() + 60
        while not self._is_there(file.as_uri()):
            assert time.monotonic() < deadline, f"{file} does not load"
            time.sleep(0.05)

    def _is_there(self, address: str) -> bool:
        if self.driver.current_url.partition("#")[0] != address:
            return False
        return bool(self.find_all("#reproduce"))

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def order(self, command: str, **arguments: object) -> Any:
        return self.driver.execute_cdp_cmd(command, arguments)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found

    def requests(self) -> list[str]:
        """The addresses that were asked for since the last time."""
        messages = [json.loads(m["message"])["message"] for m in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def usual(self) -> None:
        """A screen of the usual size and colours, with scripts."""
        self.order("Emulation.setScriptExecutionDisabled", value=False)
        self.order("Emulation.setEmulatedMedia", media="", features=[])
        self.order("Emulation.clearDeviceMetricsOverride")
        self.driver.get_log("browser")
        self.requests()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    chromium.usual()
    yield chromium
    assert [m for m in chromium.driver.get_log("browser") if m["level"] == "SEVERE"] == []


@pytest.fixture(scope="module")
def reports(filesystem: Path, swarmtest: Command) -> dict[str, Path]:
    """Four campaigns compared; and the one with hostile names."""
    found = {}
    for name, campaigns in (("usual", (1, 2, 3, 4)), ("hostile", (5,))):
        done = swarmtest("report", *campaigns, "-o", f"{name}-browser.html", cwd=filesystem)
        assert done.returncode == 0, done.stderr
        found[name] = filesystem / f"{name}-browser.html"
    return found


def line_with(browser: Browser, words: str) -> Any:
    """The line of source that was hit and has these words."""
    row = browser.run(
        """return [...document.querySelectorAll("table.source tr.hit")].find(
            (row) => row.cells[3].textContent.includes(arguments[0]))""",
        words,
    )
    assert row is not None, words
    return row


def test_all_sections_are_there_and_nothing_else_is_asked_for(
    browser: Browser, reports: dict[str, Path]
) -> None:
    browser.open(reports["usual"])
    sections = [section.get_attribute("id") for section in browser.find_all("section")]
    assert sections == [
        *("summary", "faults", "features", "discovery"),
        *("comparison", "configurations", "coverage", "reproduce"),
    ]
    for link in browser.find_all("nav a"):
        assert browser.find(link.get_attribute("hash")).is_displayed()
    assert len(browser.find_all("svg")) > 10
    assert browser.requests() == [reports["usual"].as_uri()]
    assert browser.driver.get_log("browser") == []


def test_a_click_on_a_line_shows_its_triggers_and_suppressors(
    browser: Browser, reports: dict[str, Path]
) -> None:
    browser.open(reports["usual"])
    row = line_with(browser, "block marked dirty twice")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", row)
    row.click()
    detail = browser.find("tr.detail")
    triggers = {cell.text for cell in detail.find_elements("css selector", "td.trigger")}
    suppressors = {cell.text for cell in detail.find_elements("css selector", "td.suppressor")}
    assert {"▲ mkdir", "▲ chmod"} <= triggers
    assert "▼ rmdir" in suppressors
    assert "swarmtest roles 1 2 3 4 line:tinyfs.py:" in detail.text
    assert row.find_element("css selector", "th a").get_attribute("aria-expanded") == "true"
    row.click()
    assert browser.find_all("tr.detail") == []


def test_a_line_opens_by_the_keyboard_and_tells_its_branches(
    browser: Browser, reports: dict[str, Path]
) -> None:
    browser.open(reports["usual"])
    row = line_with(browser, "if self.burnt > 12")
    row.find_element("css selector", "th a").send_keys("\ue007")
    summaries = browser.find_all("tr.detail summary")
    assert len(summaries) == 2
    assert all(one.text.startswith("branch ") and "tests" in one.text for one in summaries)


def test_lines_not_reached_differ_by_more_than_colour(
    browser: Browser, reports: dict[str, Path]
) -> None:
    browser.open(reports["usual"])
    missed = browser.find("table.source tr.missed")
    assert "✗" in missed.text
    assert "never" in missed.text
    code = missed.find_element("css selector", "td:nth-child(4)")
    assert "repeating-linear-gradient" in code.value_of_css_property("background-image")


def test_listings_can_be_filtered(browser: Browser, reports: dict[str, Path]) -> None:
    browser.open(reports["usual"])
    shown = "return [...document.querySelectorAll('table.source tbody tr')].filter(r => !r.hidden)"
    choice = browser.find("select.filter")
    choice.find_element("css selector", "option:nth-child(3)").click()
    rows = browser.run(shown)
    assert rows
    assert all("missed" in row.get_attribute("class") for row in rows)
    choice.find_element("css selector", "option:nth-child(2)").click()
    assert all("▲" in row.text or "▼" in row.text or "″" in row.text for row in browser.run(shown))


def test_tables_are_sorted_by_their_heads(browser: Browser, reports: dict[str, Path]) -> None:
    browser.open(reports["usual"])
    table = browser.find("#faults table.sortable")
    button = table.find_elements("css selector", "th button")[3]
    column = "return [...arguments[0].tBodies[0].rows].map(r => Number(r.cells[3].dataset.v))"
    button.click()
    counts = browser.run(column, table)
    assert counts == sorted(counts)
    assert len(set(counts)) > 2
    button.click()
    assert browser.run(column, table) == sorted(counts, reverse=True)
    head = button.find_element("xpath", "..")
    assert head.get_attribute("aria-sort") == "descending"


def test_long_tables_can_be_filtered(browser: Browser, reports: dict[str, Path]) -> None:
    browser.open(reports["usual"])
    details = browser.find("details.numbers")
    details.find_element("css selector", "summary").click()
    details.find_element("css selector", "input.filter").send_keys("DIR")
    rows = details.find_elements("css selector", "tbody tr")
    shown = [row.text.split()[0] for row in rows if row.is_displayed()]
    assert sorted(shown) == ["mkdir", "rmdir"]
    assert len(rows) == 11


def test_without_scripts_everything_can_be_read(browser: Browser, reports: dict[str, Path]) -> None:
    browser.order("Emulation.setScriptExecutionDisabled", value=True)
    browser.open(reports["usual"])
    text = browser.find("main").text
    for words in (
        "AssertionError: block marked dirty twice",
        "machine.chmod(",
        "triggers: ",
        "At equal tests",
        "How to reproduce each number",
        "swarmtest run fs_machine.py::TinyFs --strategy coin --seed 1",
    ):
        assert words in text
    roles = (
        line_with(browser, "block marked dirty twice")
        .find_element("css selector", "td:last-child")
        .text
    )
    assert {"▲mkdir", "▲chmod", "▼rmdir"} <= {*roles.split()}
    assert browser.find_all("th button, .filter") == []
    assert "Click a line" not in text
    summary = browser.find("details.numbers:not([open]) summary")
    summary.click()
    assert browser.find("details.numbers[open] table").is_displayed()


def test_the_dark_is_dark_and_shows_the_same(browser: Browser, reports: dict[str, Path]) -> None:
    browser.open(reports["usual"])
    light = browser.find("main").text
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.order("Emulation.setEmulatedMedia", features=dark)
    assert browser.find("main").text == light
    for selector in ("body", "svg .name", "table.source td", ".note", "svg .verdict.trigger"):
        assert contrast(browser, selector) > 4.5, selector


@pytest.mark.parametrize("media", ["screen", "print"])
def test_words_stand_out_from_the_page(
    browser: Browser, reports: dict[str, Path], media: str
) -> None:
    browser.open(reports["usual"])
    browser.order("Emulation.setEmulatedMedia", media=media)
    for selector in ("body", ".note", "svg .tick", "td.trigger", "td.suppressor", "a"):
        assert contrast(browser, selector) > 4.5, selector


def contrast(browser: Browser, selector: str) -> float:
    """The contrast of words with the page behind them, as WCAG counts it."""
    colours = browser.run(
        """const style = getComputedStyle(document.querySelector(arguments[0]));
        const inside = arguments[0].startsWith("svg") ? style.fill : style.color;
        return [inside, getComputedStyle(document.body).backgroundColor]""",
        selector,
    )
    low, high = sorted(luminance(colour) for colour in colours)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_paper_shows_what_is_closed_on_the_screen(
    browser: Browser, reports: dict[str, Path]
) -> None:
    browser.open(reports["usual"])
    cell = browser.find("details.numbers:not([open]) td")
    assert not cell.is_displayed()
    browser.order("Emulation.setEmulatedMedia", media="print")
    assert browser.run("return arguments[0].checkVisibility()", cell)
    assert not browser.find("nav").is_displayed()
    browser.order("Emulation.setEmulatedMedia", media="")
    paper = base64.b64decode(browser.order("Page.printToPDF")["data"])
    assert paper.startswith(b"%PDF")
    assert len(paper) > 50_000
    assert not cell.is_displayed()


@pytest.mark.parametrize("name", ["usual", "hostile"])
@pytest.mark.parametrize("width", [360, 820])
def test_a_small_screen_has_no_sideways_scroll(
    browser: Browser, reports: dict[str, Path], name: str, width: int
) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1}
    browser.order("Emulation.setDeviceMetricsOverride", mobile=True, **size)
    browser.open(reports[name])
    browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
    browser.run("document.querySelector('table.source tr.hit').click()")
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_hostile_names_are_only_names(browser: Browser, reports: dict[str, Path]) -> None:
    browser.open(reports["hostile"])
    assert browser.run("return document.scripts.length") == 2
    assert browser.find_all("main img, main b, main script, main textarea") == []
    text = browser.find("main").text
    assert "</script><script>alert(" in text
    assert "<b>bold</b> & 'single' \"double\" </script>" in text
    assert "größer" in text
    for row in browser.find_all("table.source tr.hit"):
        browser.run("arguments[0].click()", row)
    assert "alert(3)" in browser.find("table.source").text
    assert browser.find_all("table.source img, table.source script") == []
    assert browser.requests() == [reports["hostile"].as_uri()]


def test_the_page_refuses_scripts_that_are_not_its_own(
    chromium: Browser, reports: dict[str, Path]
) -> None:
    chromium.usual()
    chromium.open(reports["hostile"])
    chromium.run(
        """const script = document.createElement("script");
        script.textContent = "document.title = 'taken over'";
        document.body.append(script);"""
    )
    assert "taken over" not in chromium.driver.title
    refused = [m["message"] for m in chromium.driver.get_log("browser")]
    assert any("Content Security Policy" in message for message in refused)


def test_what_is_drawn_says_its_numbers_when_hovered(
    browser: Browser, reports: dict[str, Path]
) -> None:
    browser.open(reports["usual"])
    titles = browser.run(
        "return [...document.querySelectorAll('#faults svg g > title')].map(t => t.textContent)"
    )
    assert any("by chance" in title and "corrected" in title for title in titles)
    curves = browser.run(
        "return [...document.querySelectorAll('#discovery svg g > title')].map(t => t.textContent)"
    )
    assert any(title.startswith("campaign 1, coin: ") for title in curves)
