"""Figures to look at: a file at a glance, and the life of faults over versions."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from swarmtest.store.fault_lives import FaultLife
from swarmtest.store.records import FaultEvent
from swarmtest.ui.report.figures import DiscoveryPlot, Figure, PlottedCurve
from swarmtest.ui.report.file_heat import NEVER, FileHeat
from swarmtest.ui.report.lifelines import Lifelines, lifelines
from swarmtest.ui.report.svg_figures import figure_svg

HOSTILE = "</text><script>alert(1)</script> \"&'\x00\u202e" + "long" * 40


def life_of(fault: str, *events: tuple[str, str]) -> FaultLife:
    """The life of a fault, from the kind and the version of each event."""
    life = FaultLife("stack.py", fault)
    for time, (event, version) in enumerate(events):
        life = life.after(FaultEvent("stack.py", fault, event, float(time), version, time + 1))
    return life


def fixed_and_back() -> Lifelines:
    back = life_of("a1", ("seen", "v1"), ("passed", "v2"), ("seen", "v3"))
    plot = lifelines([(HOSTILE, back), ("b", life_of("b2", ("seen", "v1"), ("known", "v1")))])
    assert plot is not None
    return plot


HEAT = FileHeat("heat", HOSTILE, (3, 4, 9), (1.0, NEVER, 0.2), (HOSTILE,), ((1, 0, -1),))


def test_faults_are_placed_at_the_versions_that_showed_them() -> None:
    plot = fixed_and_back()
    assert plot.columns == ("v1", "v2", "v3")
    first, second = plot.lives
    assert first.events == ((0, "seen"), (1, "passed"), (2, "seen"))
    assert (first.state, second.state) == ("back again", "known")
    assert second.events == ((0, "seen"), (0, "known"))


def test_without_versions_campaigns_are_the_columns_and_one_is_no_figure() -> None:
    twice = life_of("a1", ("seen", ""), ("seen", ""))
    plot = lifelines([("message", twice)])
    assert plot is not None
    assert plot.columns == ("campaign 1", "campaign 2")
    assert lifelines([("message", life_of("a1", ("seen", "v1")))]) is None
    assert lifelines([]) is None


@pytest.mark.parametrize("phone", [False, True])
@pytest.mark.parametrize("figure", [HEAT, fixed_and_back()], ids=["heat", "lives"])
def test_they_are_well_formed_and_hostile_names_stay_text(figure: Figure, phone: bool) -> None:
    drawing = figure_svg(figure, phone)
    tree = ElementTree.fromstring(drawing)
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags <= {"svg", "g", "text", "title", "line", "rect", "path", "circle", "polygon"}
    assert float(tree.attrib["width"]) == (340 if phone else 1000)
    assert figure.to_csv().count("\n") > 2


def test_what_one_step_shows_is_said_and_not_drawn() -> None:
    flat = PlottedCurve(2, "coin", (7.0, 90.0), (1, 1))
    plot = DiscoveryPlot("x", "x", "tests", "events", (flat,))
    assert plot.is_flat
    assert plot.in_words == "Events: no campaign found more than one: campaign 2 after 7 tests."
    steep = PlottedCurve(3, "coin", (1.0, 9.0), (1, 2))
    assert not DiscoveryPlot("x", "x", "tests", "events", (flat, steep)).is_flat
