"""``swarmtest why`` and the other places that show an explanation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from swarmtest import open_store
from swarmtest.campaign.budget import Budget
from swarmtest.focus.focus import Focus
from swarmtest.focus.request import FocusRequest
from swarmtest.ui.dashboard.campaigns import fault_page
from swarmtest.ui.report.faults import known_faults

Run = Callable[..., CompletedProcess[str]]

PARKING = """
from swarmtest import Machine, action, integers

class Parking(Machine):
    steps = 30
    def start(self): self.reserved = self.cancelled = None
    @action(place=integers(1, 16))
    def reserve(self, place): self.reserved = place
    @action(place=integers(1, 16))
    def cancel(self, place):
        if place == self.reserved: self.cancelled = place
    @action
    def clean(self): self.cancelled = None
    @action
    def look(self): pass
    @action(place=integers(1, 16))
    def arrive(self, place): assert place != self.cancelled
"""
NEEDS = "needs reserve, then cancel, then arrive; with "


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, swarmtest: Run) -> Path:
    """A directory with a campaign whose fault was explained when it ended."""
    directory = tmp_path_factory.mktemp("parking")
    (directory / "parking.py").write_text(PARKING)
    done = swarmtest("run", "parking.py", "--tests", 800, cwd=directory)
    assert done.returncode == 1, done.stderr
    (directory / "printed.txt").write_text(done.stdout)
    return directory


@pytest.fixture(scope="module")
def fault(place: Path) -> str:
    with open_store(str(place / ".swarmtest/swarmtest.db"), read_only=True) as store:
        [found] = store.faults(1)
    return found.id


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_run_says_why_beside_the_fault(place: Path) -> None:
    assert f"by experiment: {NEEDS}" in unwrapped((place / "printed.txt").read_text())


def test_no_why_makes_no_experiments(place: Path, swarmtest: Run) -> None:
    done = swarmtest(
        *("run", "parking.py", "--tests", 800, "--no-why", "--store", "other.db"), cwd=place
    )
    assert done.returncode == 1
    assert "by experiment" not in done.stdout


def test_faults_shows_what_is_stored(place: Path, fault: str, swarmtest: Run) -> None:
    assert NEEDS in unwrapped(swarmtest("faults", cwd=place).stdout)
    [line] = swarmtest("faults", "--json", cwd=place).stdout.splitlines()
    assert json.loads(line)["why"]["paragraph"].startswith(NEEDS)


def test_the_report_and_the_dashboard_show_the_paragraph_and_the_experiments(
    place: Path, fault: str
) -> None:
    with open_store(str(place / ".swarmtest/swarmtest.db"), read_only=True) as store:
        [reported] = known_faults(store, [1])
        page = fault_page(store, 1, fault)
    assert reported.explanation is not None
    assert reported.explanation.paragraph.startswith(NEEDS)
    assert "clean: makes it disappear" in reported.experiments
    assert page.reported.experiments == reported.experiments


def test_why_explains_keeps_and_prints_it_again(place: Path, fault: str, swarmtest: Run) -> None:
    first = swarmtest("why", fault[:6], "--all", cwd=place)
    assert first.returncode == 0, first.stderr
    assert f"by experiment: {NEEDS}" in unwrapped(first.stdout)
    assert "confirmed: " in first.stdout
    assert "\n  1  reserve(" in first.stdout
    assert "clean: makes it disappear; gone in " in first.stdout
    again = swarmtest("why", fault, "--all", cwd=place)
    assert again.stdout == first.stdout
    both = unwrapped(swarmtest("roles", fault, cwd=place).stdout)
    assert "how many of the hits have the feature" in both  # what statistics say
    assert f"by experiment on its reduced test {NEEDS}" in both
    assert " confirmed: " in both
    [line] = swarmtest("roles", fault, "--json", cwd=place).stdout.splitlines()
    assert json.loads(line)["by_experiment"].startswith(NEEDS)
    data = json.loads(swarmtest("why", fault, "--json", cwd=place).stdout)
    assert data["fault"] == fault
    assert data["runs"] <= 1200


def test_another_seed_makes_other_experiments(place: Path, fault: str, swarmtest: Run) -> None:
    options = ("--seed", 3, "--runs", 300, "--no-confirm", "--json")
    data = json.loads(swarmtest("why", fault, *options, cwd=place).stdout)
    assert (data["seed"], data["confirmation"]) == (3, None)
    assert data["paragraph"].startswith("needs reserve, then cancel, then arrive")


def test_mistakes_are_refused_in_one_line(
    place: Path, fault: str, swarmtest: Run, refused: Callable[..., str]
) -> None:
    refused(swarmtest("why", "ffffffff", cwd=place), "no test of a fault ffffffff")
    refused(swarmtest("why", fault, "--runs", 0, cwd=place), "at least 1 run")
    refused(swarmtest("why", fault, "--store", "none.db", cwd=place), "none.db")


def test_focus_on_a_rare_fault_starts_from_its_explanation(place: Path, fault: str) -> None:
    with open_store(str(place / ".swarmtest/swarmtest.db")) as store:
        request = FocusRequest(fault=(fault,))
        focus = Focus("parking.py", request, store, Budget(tests=400), workers=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(place)
            outcome = focus.run()
        options = store.campaign(outcome.campaign).options
    # Tests like the explained one: three to fifteen steps, in which places repeat.
    assert options["subject"]["steps"] == [3, 15]
    assert options["subject"]["repeats"] > 0
    assert options["subject"]["values"]  # those of the explained test
    [target] = outcome.targets
    assert target.directed.fraction > 0.01  # undirected: 1 test in 10,000
    assert "with tests of 3 to 15 steps, in which arguments repeat" in target.proxy
    assert target.triggers == ("arrive", "cancel", "reserve")
    assert target.suppressors == ("clean",)
    assert "its explanation by" in target.proxy
