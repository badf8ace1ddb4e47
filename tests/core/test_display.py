"""Results in Python: as text, in a notebook, as a data frame, and as a plot."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest

from swarmtest import Campaign, Machine, Outcome, UserError, action, open_store
from swarmtest.compare import compare_campaigns
from swarmtest.core.display import MOST_ROWS, Displayed, ShownTable
from swarmtest.growth import measure_growth
from swarmtest.roles import Study
from swarmtest.store.interface import Store


class Tower(Machine):
    def start(self) -> None:
        self.height = 0

    @action
    def build(self) -> None:
        self.height += 1
        assert self.height < 40, "<script>alert(1)</script>"

    @action
    def raze(self) -> None:
        self.height = 0


@pytest.fixture(scope="module")
def store() -> Store:
    return open_store(":memory:")


@pytest.fixture(scope="module")
def outcome(store: Store) -> Outcome:
    Campaign(Tower, "all-on", 60, seed=1, store=store, workers=0).run()
    return Campaign(Tower, "coin", 60, store=store, workers=0).run()


@pytest.fixture(scope="module")
def results(store: Store, outcome: Outcome) -> dict[str, Displayed]:
    study = Study(store, [outcome.campaign])
    return {
        "outcome": outcome,
        "faults": outcome.faults,  # type: ignore[dict-item]  # it is a list that shows itself
        "study": study,
        "roles": study.table(),
        "comparison": compare_campaigns(store, [1, 2]),
        "growth": measure_growth(store, [outcome.campaign]),
    }


NAMES = ("outcome", "faults", "study", "roles", "comparison", "growth")


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_text_html_and_a_picture(
    results: dict[str, Displayed], name: str, tmp_path: Path
) -> None:
    result = results[name]
    assert len(str(result).splitlines()) > 2
    page = result._repr_html_()
    assert "<table>" in page
    assert "<script" not in page
    plot = result.plot()
    ElementTree.fromstring(plot.svg)
    assert "<script" not in plot._repr_html_()
    assert plot.save(tmp_path / "plot.svg").read_text() == plot.svg
    assert plot.save(tmp_path / "plot.csv").read_text().count("\n") > 1


@pytest.mark.parametrize("name", NAMES)
def test_a_data_frame_has_columns_of_equal_length(results: dict[str, Displayed], name: str) -> None:
    lengths = {len(column) for column in results[name].data_columns().values()}
    assert len(lengths) == 1
    if importlib.util.find_spec("pandas"):
        assert len(results[name].to_pandas()) == lengths.pop()


def test_a_row_per_test_tells_what_was_enabled_and_what_failed(outcome: Outcome) -> None:
    columns = outcome.data_columns()
    assert columns["trial"].tolist() == [*range(60)]
    failed = columns["fault"] != ""
    assert failed.sum() == outcome.progress.failed > 0
    assert set(columns["build"][failed]) == {1.0}


def test_without_pandas_the_message_says_so(
    results: dict[str, Displayed], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install pandas"):
        results["growth"].to_pandas()


def test_what_cannot_be_drawn_is_refused_in_a_line(outcome: Outcome, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found no lines; "):
        outcome.plot("line")
    with pytest.raises(UserError, match="did you mean 'tests'"):
        outcome.plot(by="test")
    with pytest.raises(UserError, match=r"\.svg, \.csv, \.pdf or \.png"):
        outcome.plot().save(tmp_path / "plot.jpeg")


def test_a_campaign_whose_store_is_gone_says_so() -> None:
    outcome = Campaign(Tower, "coin", 5, store=":memory:", workers=0).run()
    assert "5 tests" in str(outcome)
    with pytest.raises(UserError, match="pass a file or an open store"):
        outcome.plot()


def test_long_tables_are_cut_and_say_so() -> None:
    table = ShownTable("many", ("number",), [(n,) for n in range(MOST_ROWS + 5)])
    assert str(table).endswith("5 more rows: to_pandas() has all")
    assert table._repr_html_().count("<tr>") == MOST_ROWS + 1


def test_an_interrupted_campaign_goes_on_when_it_is_run_again(tmp_path: Path) -> None:
    seen: list[int] = []

    def stop(progress: object, faults: object) -> None:
        seen.append(1)
        if len(seen) == 1:
            raise KeyboardInterrupt

    store = str(tmp_path / "store.db")
    campaign = Campaign(Tower, "coin", 300, store=store, workers=0, on_progress=stop)
    first = campaign.run()
    assert first.interrupted
    assert "run it again to continue" in str(first)
    second = campaign.run()
    assert (second.campaign, second.progress.tests) == (first.campaign, 300)
    assert not second.interrupted
