"""Pages pass axe, can be handed on as one file, and stay small with thousands of faults."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from swarmtest.core.space import Space
from swarmtest.store import open_store
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord, pack_floats

FAULTS = 3000
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"]
VIOLATIONS = """async (rules) => {
  const options = { resultTypes: ["violations"], runOnly: rules };
  return (await axe.run(document, options)).violations.map((v) => `${v.id}: ${v.nodes[0].html}`);
}"""


@pytest.mark.usefixtures("address")  # before the test: what it asks for itself ends with it
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_pass_axe(visit, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python")
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text()
    visitor = visit(color_scheme=scheme, bypass_csp=True)
    for path in ("/campaigns/1", "/campaigns/1/faults/f6f54754", "/campaigns/1/source/f1#f1L69"):
        page = visitor.go(path)
        page.evaluate(axe)
        assert page.evaluate(VIOLATIONS, RULES) == [], path


def test_a_page_as_one_file_needs_no_dashboard(client, visit, tmp_path: Path) -> None:
    answer = client.get("/campaigns/1/source/f1?file=1")
    assert (
        'filename="swarmtest-campaigns-1-source-f1.html"' in answer.headers["content-disposition"]
    )
    file = tmp_path / "page.html"
    file.write_text(answer.text)
    visitor = visit(viewport={"width": 390, "height": 800})
    visitor.page.goto(f"{file.as_uri()}#f1L69")
    assert "of the hits" in visitor.page.locator("tr.detail").inner_text()
    assert visitor.page.locator("form, header.top").count() == 0
    assert visitor.asked == [file.as_uri()]
    assert not visitor.is_too_wide
    assert 'href="/' not in answer.text


@pytest.fixture(scope="module")
def many_faults(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a campaign that has so many faults, each shown by one test."""
    path = str(tmp_path_factory.mktemp("many") / "store.db")
    space = Space(["push", "pop"])
    data, half = space.configuration(["push"]).to_bytes(), pack_floats([0.5])
    with open_store(path) as store:
        record = CampaignRecord("many.py::Many", "coin", 0, space.to_json(), {}, "finished")
        number = store.add_campaign(record)
        faults = [
            FaultRecord(
                f"{i:08x}", "exception", f"KeyError: {i} [step{i % 50}: x]", "", i, i, 9, None
            )
            for i in range(FAULTS)
        ]
        rows = [
            TrialRecord(
                i, data, half, seed=i, verdict=1, fault=f"{i:08x}", steps=9, cpu_ns=9, wall_ns=9
            )
            for i in range(FAULTS)
        ]
        store.record(number, rows, faults)
    return path


@pytest.fixture(scope="module")
def pages(many_faults: str) -> Iterator[object]:
    """The dashboard of that store, asked without a server."""
    testclient = pytest.importorskip("starlette.testclient")
    from swarmtest.ui.dashboard.app import Dashboard
    from swarmtest.ui.dashboard.context import DashboardSettings

    dashboard = Dashboard(DashboardSettings(many_faults))
    with testclient.TestClient(dashboard.app, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("query", ["", "?page=30", "?words=KeyError", "?sort=rare&page=2"])
def test_a_page_of_thousands_of_faults_is_small(pages, query: str) -> None:
    answer = pages.get(f"/campaigns/1/faults{query}")
    assert answer.status_code == 200
    assert len(answer.content) < 200_000
    assert answer.text.count("/campaigns/1/trials/") == 100
    assert "3,000 faults by error and function" in answer.text


def test_a_menu_of_faults_is_short_and_has_the_one_that_was_chosen(pages) -> None:
    answer = pages.get("/campaigns/1/configurations?fault=00000bb7")
    assert len(answer.content) < 200_000
    assert "<option selected>00000bb7</option>" in answer.text
