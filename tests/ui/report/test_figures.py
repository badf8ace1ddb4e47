"""Figures: their numbers are the study's, and every renderer draws them."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from swarmtest.analysis.discovery import discovery
from swarmtest.core.errors import UserError
from swarmtest.roles.roles import FeatureRole, FeatureShare
from swarmtest.roles.study import Study
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.ui.report.figures import (
    DiscoveryPlot,
    Figure,
    HeatGroup,
    HeatMap,
    HeatRow,
    IntervalPlot,
    PlottedCurve,
    RoleShares,
    configurations,
    discovery_curves,
    interval_plot,
)
from swarmtest.ui.report.matplotlib_figures import require_matplotlib, write_figures
from swarmtest.ui.report.page import ReportPage, make_page
from swarmtest.ui.report.svg_figures import figure_svg

HOSTILE = "</text><script>alert(1)</script> \"&'\x00\x1b\u202e\ud800 $x_1$ " + "long" * 40
NAN = float("nan")
EVERY_ROLE = (
    FeatureRole("always", "trigger", 1.0, 0.9, 1.0, 0.5, 40, 1e-9, 1e-8, 4),
    FeatureRole(HOSTILE, "trigger", 0.7, 0.55, 0.8, 0.5, 40, 0.02, 0.2, 4),
    FeatureRole("around", "irrelevant", 0.5, 0.4, 0.6, 0.5, 40, 1.0, 1.0, 4),
    FeatureRole("below", "suppressor", 0.3, 0.2, 0.45, 0.5, 40, 0.02, 0.2, 4),
    FeatureRole("never", "suppressor", 0.0, 0.0, 0.1, 0.5, 40, 1e-9, 1e-8, 4),
    FeatureRole("few", "insufficient data", 0.5, 0.1, 0.9, 0.5, 3, 1.0, 1.0, 4),
    FeatureRole("fixed", "no variation", 0.0, 0.0, 1.0, NAN, 0, 1.0, 1.0, 0),
)
FIGURES: list[Figure] = [
    IntervalPlot("intervals", HOSTILE, EVERY_ROLE, 0.95),
    RoleShares("roles", HOSTILE, (FeatureShare(HOSTILE, 0.5, 0.25, 8),), 8),
    RoleShares("nothing", "nothing", (FeatureShare("x", 0.0, 0.0, 0),), 0),
    DiscoveryPlot(
        "curves", HOSTILE, "tests", "faults", (PlottedCurve(1, HOSTILE, (1.0, 9.0), (1, 2)),)
    ),
    DiscoveryPlot(
        "instant", "one", "CPU seconds", "faults", (PlottedCurve(1, "coin", (0.0,), (1,)),)
    ),
    HeatMap(
        "heat",
        HOSTILE,
        ("a", HOSTILE),
        (HeatGroup(HOSTILE, 3, (0.5, 1.0), (HeatRow("1#0", (0.0, 0.01)),)),),
        "all",
    ),
]


@pytest.fixture
def opened(store: Path) -> Iterator[Store]:
    with open_store(store, must_exist=True, read_only=True) as found:
        yield found


@pytest.fixture
def study(opened: Store) -> Study:
    return Study(opened, [1, 3])


def rows_of(figure: Figure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(figure.to_csv())))


def test_csv_of_intervals_has_the_numbers_of_the_study(study: Study) -> None:
    fault = next(f for f in study.faults if "dirty twice" in f.detail)
    plot = interval_plot(study, fault)
    rows = {row["feature"]: row for row in rows_of(plot)}
    for role in study.roles(fault):
        row = rows[role.feature]
        assert row["role"] == role.role
        assert float(row["low"]) == role.low
        assert float(row["share"]) == role.share
        assert float(row["base"]) == role.base
        assert row["discovery"] == str(int(role.is_discovery(0.05)))
    assert rows["mkdir"]["role"] == rows["chmod"]["role"] == "trigger"
    assert rows["rmdir"]["role"] == "suppressor"
    shares = [float(row["share"]) for row in rows_of(plot)]
    assert shares == sorted(shares, reverse=True)


def test_what_is_too_little_data_says_how_much_is_needed() -> None:
    plot = IntervalPlot("x", "x", EVERY_ROLE, 0.95)
    assert plot.verdict(EVERY_ROLE[5]) == "insufficient data (3 hits, 4 needed)"
    drawn = figure_svg(plot)
    assert "3 of 4 hits" in drawn
    assert "insufficient data (3 hits, 4 needed)" in drawn


def test_roles_differ_in_shape_not_only_in_colour() -> None:
    tree = ElementTree.fromstring(figure_svg(IntervalPlot("x", "x", EVERY_ROLE, 0.95)))
    shapes = {
        (mark.get("class") or "").removeprefix("mark "): (
            mark.tag.rpartition("}")[2],
            len((mark.get("points") or "").split()),
        )
        for mark in tree.iter()
        if (mark.get("class") or "").startswith("mark ")
    }
    assert shapes["trigger"] == ("polygon", 3)
    assert shapes["trigger hollow"] == ("polygon", 3)
    assert shapes["irrelevant"] == ("circle", 0)
    assert shapes["insufficient"] == ("polygon", 4)
    ups = {cls: points for cls, points in shapes.items() if cls.endswith("hollow")}
    assert set(ups) == {"trigger hollow", "suppressor hollow"}


def test_curves_end_with_everything_that_was_found(opened: Store) -> None:
    runs = [discovery(opened, campaign) for campaign in (1, 2, 3, 4)]
    for curves in discovery_curves(runs):
        kind = curves.name.split("-")[1]
        for curve, run in zip(curves.curves, runs, strict=True):
            assert curve.found[-1] == len(run.of_kind(kind))
            total = run.tests if curves.unit == "tests" else run.cpu_seconds[-1]
            assert curve.effort[-1] == total
            assert list(curve.effort) == sorted(curve.effort)


def test_a_curve_of_many_steps_is_thinned_but_keeps_its_ends(opened: Store) -> None:
    run = discovery(opened, 1)
    many = type(run)(
        **{
            **vars(run),
            "cpu_seconds": np.arange(1.0, 20_001.0),
            "found": tuple(
                run.found[0].__class__(run.found[0].target, 1, i) for i in range(20_000)
            ),
        }
    )
    curve = discovery_curves([many])[0].curves[0]
    assert len(curve.effort) < 500
    assert (curve.found[0], curve.found[-1]) == (1, 20_000)


def test_configurations_are_those_of_the_tests(study: Study) -> None:
    heat = configurations(study)
    evidence = study.evidence
    assert sum(group.tests for group in heat.groups) == evidence.n
    for group in heat.groups:
        assert 0 < len(group.rows) <= 16
        for row in group.rows:
            campaign, trial = map(int, row.label.split("#"))
            at = (evidence.trial == trial) & (evidence.campaign == [1, 3].index(campaign))
            assert evidence.weights(at)[0].tolist() == pytest.approx(row.weights, abs=1e-4)
    assert "At most" in heat.caption


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_svg_is_well_formed_and_hostile_names_stay_text(figure: Figure) -> None:
    tree = ElementTree.fromstring(figure_svg(figure))
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags <= {"svg", "g", "text", "title", "line", "rect", "path", "circle", "polygon"}
    assert rows_of(figure)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_hostile_figures_are_drawn_for_papers(figure: Figure, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from swarmtest.ui.report.matplotlib_figures import write_figure

    written = {path.suffix: path for path in write_figure(figure, tmp_path)}
    assert written[".pdf"].read_bytes().startswith(b"%PDF")
    ElementTree.fromstring(written[".svg"].read_bytes())
    assert written[".png"].stat().st_size > 2000


@pytest.fixture
def page(opened: Store, filesystem: Path, monkeypatch: pytest.MonkeyPatch) -> ReportPage:
    monkeypatch.chdir(filesystem)
    return make_page(opened, [1, 2])


def test_figures_for_a_paper_fit_a_column_and_come_with_their_data(
    page: ReportPage, tmp_path: Path
) -> None:
    image = pytest.importorskip("matplotlib.image")
    page = replace(page, faults=page.faults[:1], curves=page.curves[-1:])
    written = {path.name for path in write_figures(page, tmp_path)}
    assert written == {path.name for path in tmp_path.iterdir()}
    intervals = next(name for name in written if name.startswith("intervals") and ".png" in name)
    for name in (intervals, "discovery-line-by-tests.png", "roles-line.png"):
        pixels = image.imread(tmp_path / name)
        assert 850 < pixels.shape[1] < 1010, (name, pixels.shape)  # 3.33 inches at 300 dpi
        assert len(np.unique(pixels[:, :, :3].sum(axis=2))) > 20
    for name in written:
        stem, _, ending = name.rpartition(".")
        if ending != "csv":
            assert f"{stem}.csv" in written
    lines = list(csv.DictReader(io.StringIO((tmp_path / "targets-line.csv").read_text())))
    hits = dict(zip((r["target"] for r in lines), (int(r["hits"]) for r in lines), strict=True))
    table = page.tables["line"]
    assert hits == {t.name: int(h) for t, h in zip(table.targets, table.hits, strict=True)}


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 'swarmtest\[figures\]'"):
        require_matplotlib()
