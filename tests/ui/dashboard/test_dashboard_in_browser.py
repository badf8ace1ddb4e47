"""The dashboard in a real browser: every view, live, hostile data, keyboard, dark, phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from swarmtest.store import open_store

# Asked for before each test begins: what a test asks for in its middle is ended with the test.
pytestmark = pytest.mark.usefixtures("address")
FAULT = "f6f54754"
"""RecursionError: links in a circle."""
VIEWS = {
    "/": "fs_machine.py::TinyFs",
    "/campaigns/1": "Faults by tests",
    "/campaigns/1/faults": "RecursionError: links in a circle",
    "/campaigns/1/roles": "triggers: ",
    "/campaigns/1/source": "tinyfs.py",
    "/campaigns/1/source/f1": "class FileSystem",
    "/campaigns/1/configurations": "newest",
    "/campaigns/1/trials/7": "swarmtest replay 1#7",
    "/campaigns/4/races": "stopped here",
    "/campaigns/5/search": "What the best points reach",
    "/compare?c=1&c=2": "At equal tests: the first 300 of each run",
    "/resources": "CPU",
    "/commands": "Commands started here",
}


def test_every_view_shows_what_it_is_for_and_breaks_no_policy(visit, address) -> None:
    visitor = visit()
    for path, expected in VIEWS.items():
        page = visitor.go(path)
        page.get_by_text(expected).first.wait_for()
        assert page.locator("main h1, main h2, h1").count() >= 1, path
    assert {url for url in visitor.asked if not url.startswith(address)} == set()


def test_plots_are_those_of_the_report(visit) -> None:
    visitor = visit()
    page = visitor.go("/campaigns/1/roles")
    marks = page.locator("svg .mark.trigger")
    assert marks.count() >= 3
    colour = marks.first.evaluate("mark => getComputedStyle(mark).fill")
    assert colour == "rgb(0, 114, 178)"


def test_a_fault_has_its_test_as_code(visit) -> None:
    visitor = visit()
    page = visitor.go("/campaigns/1/faults")
    page.get_by_role("link", name="f6f54754").click()
    code = page.locator("#fault pre code").first.inner_text()
    assert "from fs_machine import TinyFs\n\nmachine = TinyFs()\nmachine.start()\n" in code
    assert re.search(r"^machine.link\('.', '.'\)$", code, re.MULTILINE)
    assert "swarmtest replay 1#" in page.locator("#fault").inner_text()


def test_a_line_of_source_tells_its_roles(visit) -> None:
    visitor = visit()
    page = visitor.go("/campaigns/1/source/f1")
    row = page.locator("tr.hit.told").first
    row.locator("th a").press("Enter")
    assert "of the hits" in page.locator("tr.detail").first.inner_text()


@pytest.mark.parametrize("path", ["/campaigns/3", "/campaigns/3/faults", "/campaigns/3/source/f1"])
def test_hostile_text_is_only_text(visit, path) -> None:
    visitor = visit()
    page = visitor.go(path)
    if path.endswith("faults"):
        page.locator("tbody a").first.click()
        assert "<img src=x onerror=alert(2)>" in page.locator("#details").inner_text()
    assert page.locator("img").count() == 0
    assert page.locator("script:not([src]):not([type='application/json'])").count() == 0
    # The visitor fixture fails if an alert was shown, or the policy had to stop anything.


def test_a_campaign_that_runs_is_followed_without_loading_the_page_again(visit, site: Path) -> None:
    visitor = visit()
    page = visitor.go("/")
    page.get_by_text("Start a campaign").click()
    page.get_by_label("Subject").fill("slow.py")
    page.get_by_label("Strategy").fill("coin")
    page.get_by_label("Tests").fill("4000")
    page.get_by_label("Workers").fill("1")
    preview = page.locator("form[action='/start'] [data-preview]").inner_text()
    assert preview == "swarmtest run slow.py --strategy coin --tests 4000 --workers 1"
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/commands/*")
    assert "swarmtest run slow.py" in page.locator(".command code").first.inner_text()
    page.get_by_text("slow.py::Slow: 2 features").wait_for()

    visitor.enter()
    page.goto(visitor.address + "/")
    row = page.locator("tr", has_text="slow.py::Slow").first
    row.wait_for()
    row.get_by_role("link", name="slow.py::Slow").click()
    page.locator("#live.on").wait_for()
    page.evaluate("window.mark = 'the same page'")
    tests = page.locator("#totals dd").first
    before = _number(tests.inner_text())
    _until(page, lambda: _number(tests.inner_text()) > before + 20)
    page.get_by_text("AssertionError: five steps").first.wait_for()
    page.locator("#workers .badge.working").wait_for()
    assert page.evaluate("window.mark") == "the same page"
    _until(page, lambda: "tests" in page.locator("#news").inner_text())

    page.get_by_role("button", name="Stop").click()
    page.locator("#heading .badge.interrupted").wait_for()
    with open_store(site / ".swarmtest" / "swarmtest.db", read_only=True) as store:
        newest = store.campaigns()[-1]
        assert (newest.subject, newest.status) == ("slow.py::Slow", "interrupted")
        assert 0 < store.summary(newest.id)["trials"] < 4000


def test_a_fault_is_reduced_and_focused_on_from_its_page(visit) -> None:
    visitor = visit()
    page = visitor.go("/campaigns/1/faults/f6f54754")
    page.get_by_role("button", name="Reduce its test").click()
    page.wait_for_url("**/commands/*")
    page.locator(".badge.done").wait_for()
    assert "swarmtest reduce f6f54754" in page.locator(".command code").first.inner_text()
    assert "nothing more can go" in page.locator(".output").inner_text()

    page = visitor.go("/campaigns/1/faults/f6f54754")
    form = page.locator("form[action$='/focus']")
    form.get_by_label("Tests").fill("50")
    form.get_by_role("button").click()
    page.wait_for_url("**/commands/*")
    page.locator(".badge.done").wait_for()
    assert "--fault f6f54754 --tests 50" in page.locator(".command code").first.inner_text()


def test_it_can_be_used_by_keyboard_alone(visit) -> None:
    visitor = visit()
    page = visitor.go("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(40):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.textContent.trim()")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none", focused
        if focused == "fs_machine.py::TinyFs":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/campaigns/\d+$"))


def test_it_can_be_read_aloud(visit) -> None:
    visitor = visit()
    for path in ("/", "/campaigns/1", "/campaigns/1/configurations", "/compare", "/resources"):
        page = visitor.go(path)
        assert page.locator("html[lang=en]").count() == 1
        assert page.locator("main").count() == page.locator("header.top").count() == 1
        assert page.locator("[aria-live=polite]").count() == 1
        assert page.evaluate(UNNAMED) == []


UNNAMED = """() => [
  ...[...document.querySelectorAll("input:not([type=hidden]), select, button")].filter((one) =>
    !one.labels?.length && !one.ariaLabel && !one.textContent.trim()),
  ...[...document.querySelectorAll("svg:not([aria-hidden])")].filter((one) => !one.ariaLabel),
  ...[...document.querySelectorAll("table")].filter((one) => !one.caption),
  ...[...document.querySelectorAll("thead th")].filter((one) => !one.scope),
].map((one) => one.outerHTML.slice(0, 120))"""


def test_dark_and_light_follow_the_system_and_the_button(visit) -> None:
    visitor = visit(color_scheme="dark")
    page = visitor.go("/campaigns/1")
    assert _ground(page) == "rgb(20, 23, 26)"
    page.get_by_role("button", name="Switch between dark and light").click()
    assert _ground(page) == "rgb(255, 255, 255)"
    page = visitor.go("/")
    assert _ground(page) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(visit, scheme) -> None:
    visitor = visit(color_scheme=scheme)
    for path in (
        "/",
        "/campaigns/1",
        "/campaigns/1/configurations",
        "/campaigns/1/faults/f6f54754",
    ):
        page = visitor.go(path)
        assert page.evaluate(FAINT) == [], path


FAINT = (Path(__file__).parent / "faint.js").read_text()


def test_no_page_is_wider_than_a_phone(visit) -> None:
    visitor = visit(viewport={"width": 360, "height": 740}, device_scale_factor=2)
    for path in (*VIEWS, "/campaigns/3/faults", "/campaigns/1/faults/f6f54754"):
        visitor.go(path)
        assert not visitor.is_too_wide, path


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _ground(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def _until(page: Any, condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        page.wait_for_timeout(100)
    pytest.fail("it did not come")
