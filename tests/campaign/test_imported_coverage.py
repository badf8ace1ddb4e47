"""Coverage that another tool measured, as a campaign."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_processes import pytest_words

from swarmtest import open_store
from swarmtest.campaign.imported_coverage import import_coverage
from swarmtest.ui.terminal.coverage import campaign_tally

Run = Callable[..., subprocess.CompletedProcess[str]]

CART = """\
def total(prices):
    found = 0
    for price in prices:
        found += max(
            price,
            0,
        )
    if found > 100:
        found = 100
    return found
"""
HARNESS = """\
import cart
from swarmtest import Machine, action, integers

class Carts(Machine):
    @action(price=integers(0, 200))
    def total(self, price):
        cart.total([price])
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with data of coverage.py: one test, which leaves out line 9."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "cart.py").write_text(CART)
    (tmp_path / "harness.py").write_text(HARNESS)
    (tmp_path / "use.py").write_text("import cart\ncart.total([1, 2])\n")
    words = [sys.executable, "-m", "coverage"]
    subprocess.run([*words, "run", "--branch", "--include=cart.py", "use.py"], check=True)
    for report in (["xml", "-q", "-o", "cart.xml"], ["lcov", "-q", "-o", "cart.lcov"]):
        subprocess.run([*words, *report], check=True)
    return tmp_path


@pytest.mark.parametrize("file", [".coverage", "cart.xml", "cart.lcov"])
def test_lines_and_branches_are_those_of_our_own_campaigns(place: Path, file: str) -> None:
    with open_store(":memory:") as store:
        campaign, tests = import_coverage(store, Path(file), file)
        assert tests == 1
        tally = campaign_tally(store, campaign)
        assert tally.summary() == "line 6 of 7 (86%), branch 3 of 4 (75%)"
        targets = store.watched_targets(campaign).values()
        assert {t.function for t in targets if t.kind == "branch"} == {"total"}


@pytest.mark.parametrize("file", [".coverage", "leave.xml", "leave.lcov"])
def test_leaving_a_function_is_told_apart_from_going_on(place: Path, file: str) -> None:
    Path("leave.py").write_text("def f(x):\n    if x:\n        print(x)\n\nf(1)\n")
    words = [sys.executable, "-m", "coverage"]
    subprocess.run([*words, "run", "--branch", "leave.py"], check=True)
    for report in (["xml", "-q", "-o", "leave.xml"], ["lcov", "-q", "-o", "leave.lcov"]):
        subprocess.run([*words, *report], check=True)
    with open_store(":memory:") as store:
        campaign, _ = import_coverage(store, Path(file), file)
        tally = campaign_tally(store, campaign)
        reached = [str(t) for n, t in enumerate(tally.catalogue.targets) if tally.reached(n)]
    assert [name for name in reached if "->" in name] == ["branch:leave.py:2->3"]


def test_importing_does_not_change_what_another_campaign_has_reached(
    swarmtest: Run, place: Path
) -> None:
    swarmtest("run", "harness.py", "-n", 50, "--coverage", "line,branch", cwd=place)
    before = swarmtest("coverage", 1, cwd=place).stdout
    assert "4 of 4 (100%)" in before
    for file in (".coverage", "cart.xml", "cart.lcov"):
        swarmtest("import-coverage", file, cwd=place)
    assert swarmtest("coverage", 1, cwd=place).stdout == before


def test_of_files_that_are_not_python_the_lines_are_those_that_are_listed(place: Path) -> None:
    Path("calc.lcov").write_text("SF:calc.c\nDA:1,1\nDA:2,0\nBRDA:1,0,0,1\nend_of_record\n")
    with open_store(":memory:") as store:
        campaign, _ = import_coverage(store, Path("calc.lcov"), "calc")
        assert campaign_tally(store, campaign).summary() == "line 1 of 2 (50%)"


def test_data_without_branches_tell_of_lines_only(place: Path) -> None:
    subprocess.run([sys.executable, "-m", "coverage", "run", "--include=cart.py", "use.py"])
    with open_store(":memory:") as store:
        campaign, _ = import_coverage(store, Path(".coverage"), "lines")
        assert campaign_tally(store, campaign).summary() == "line 6 of 7 (86%)"


def test_our_own_json_comes_back_with_its_tests(swarmtest: Run, place: Path) -> None:
    kinds = "line,branch,path"
    swarmtest("run", "harness.py", "-n", 30, "-j", 1, "--coverage", kinds, cwd=place)
    swarmtest("coverage", "-o", "own.json", "--by-test", cwd=place)
    done = swarmtest("import-coverage", "own.json", cwd=place)
    assert done.stdout == "campaign 2: 30 tests from own.json\n", done.stderr
    shown = [swarmtest("coverage", n, "--targets", cwd=place).stdout for n in (1, 2)]
    assert shown[0] == shown[1]


def test_our_own_json_of_an_older_version_of_a_file_says_nothing_of_the_new_one(
    swarmtest: Run, place: Path
) -> None:
    options = ("-n", 30, "-j", 1, "--coverage", "line")
    swarmtest("run", "harness.py", *options, cwd=place)
    swarmtest("coverage", "-o", "own.json", cwd=place)
    (place / "cart.py").write_text("# a comment\n" + CART)
    swarmtest("run", "harness.py", *options, cwd=place)
    before = swarmtest("coverage", 2, cwd=place).stdout
    swarmtest("import-coverage", "own.json", cwd=place)
    assert swarmtest("coverage", 2, cwd=place).stdout == before
    assert swarmtest("coverage", 3, cwd=place).stdout == before


def test_json_of_pytest_is_a_campaign_with_its_tests(swarmtest: Run, place: Path) -> None:
    (place / "test_cart.py").write_text(
        "import cart\ndef test_one(): cart.total([1])\ndef test_none(): cart.total([])\n"
    )
    words = pytest_words("-q", "--swarm-coverage", "line")
    subprocess.run([*words, "--swarm-cover", "cart"], cwd=place, check=True)
    done = swarmtest("import-coverage", "swarm-coverage.json", cwd=place)
    assert done.stdout == "campaign 1: 2 tests from swarm-coverage.json\n"
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        names = [trial.origin for trial in store.trials(1)]
    assert names == ["test_cart.py::test_one", "test_cart.py::test_none"]


def test_json_of_somebody_else_is_refused(
    swarmtest: Run, place: Path, refused: Callable[..., str]
) -> None:
    (place / "other.json").write_text('{"tests": 3}')
    done = swarmtest("import-coverage", "other.json", cwd=place)
    refused(done, "other.json: not what `swarmtest coverage -o` writes as JSON")


def test_an_imported_campaign_has_no_faults_and_cannot_be_run_again(
    swarmtest: Run, place: Path, refused: Callable[..., str]
) -> None:
    swarmtest("import-coverage", "cart.lcov", cwd=place)
    done = swarmtest("faults", 1, cwd=place)
    assert (done.stdout, done.returncode) == ("campaign 1 found no fault\n", 0)
    for words in (["resume", 1], ["replay", "1#0"]):
        done = swarmtest(*words, cwd=place)
        refused(done, "campaign 1 is coverage of another tool, read from cart.lcov")
