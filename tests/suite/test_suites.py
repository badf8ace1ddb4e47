"""From a campaign to a file that a team commits."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from tests.suite.conftest import CART, Workplace

from swarmtest.ui.cli import main

FILE = "tests/test_regressions.py"


@pytest.fixture(scope="module")
def written(shop: Workplace) -> dict[str, Any]:
    """The suite of the shop, written to a file; and what was said of it."""
    told: dict[str, Any] = json.loads(shop.swarmtest("suite", "-o", FILE, "--json"))
    return told


def test_a_suite_keeps_all_that_a_campaign_reached_in_a_few_short_tests(
    shop: Workplace, written: dict[str, Any]
) -> None:
    assert written["kept"] == written["targets"]
    assert set(written["by_kind"]) == {"branch", "event", "line", "mutant"}
    assert len(written["tests"]) <= 6
    before, now = written["parts"]
    assert now < before / 2
    assert written["method"] == "exact"
    assert written["proven"]


def test_the_file_passes_and_the_fault_is_expected(
    shop: Workplace, written: dict[str, Any]
) -> None:
    status, output = shop.pytest(FILE)
    assert status == 0
    assert f"{len(written['tests']) - 1} passed, 1 xfailed" in output


def test_the_file_says_what_each_test_keeps_and_how_it_is_made_again(
    shop: Workplace, written: dict[str, Any]
) -> None:
    text = (shop.path / FILE).read_text()
    assert f"    swarmtest suite 1 -o {FILE}\n" in text
    assert "campaign 1 (shop.py::Shop, seed 1)" in " ".join(text.split())
    assert "# Shows fault " in text
    assert "AssertionError: negative total [Shop.total: assert self.cart.total() >= 0]" in text
    assert "#   line cart.py:" in text
    assert str(shop.path) not in text


def test_the_file_is_as_formatters_and_linters_like_it(
    shop: Workplace, written: dict[str, Any]
) -> None:
    for words in (["check"], ["format", "--check"], ["format", "--check", "--line-length", "120"]):
        command = [sys.executable, "-m", "ruff", *words, "--isolated", FILE]
        done = subprocess.run(command, cwd=shop.path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_the_same_store_gives_the_same_bytes(shop: Workplace, written: dict[str, Any]) -> None:
    before = (shop.path / FILE).read_bytes()
    shop.swarmtest("suite", "-o", FILE)
    assert (shop.path / FILE).read_bytes() == before


def test_the_file_tells_when_the_bug_is_fixed(shop: Workplace, written: dict[str, Any]) -> None:
    shop.write("cart.py", CART.replace("total = -1", "total += 0"))
    try:
        status, output = shop.pytest(FILE)
    finally:
        shop.write("cart.py", CART)
    assert status == 1
    assert "XPASS(strict)" in output


def test_a_mutant_that_is_kept_is_killed_by_the_file(
    shop: Workplace, written: dict[str, Any]
) -> None:
    added = [one for test in written["tests"] for one in test["adds"]]
    assert any(one.startswith("mutant:cart.py") for one in added)
    shop.write("cart.py", CART.replace("if count < 1", "if count < 0"))
    try:
        status, _ = shop.pytest(FILE)
    finally:
        shop.write("cart.py", CART)
    assert status == 1


def test_part_of_the_targets_and_part_of_what_tests_add_make_a_smaller_suite(
    shop: Workplace, written: dict[str, Any]
) -> None:
    words = ["--kind", "line,branch", "--keep", "80", "--keep-parts", "70", "--json"]
    less = json.loads(shop.swarmtest("suite", *words))
    assert 0.5 * less["targets"] <= less["kept"] < less["targets"]
    assert sum(one["size"] for one in less["tests"]) < written["parts"][1]


def test_whole_tests_stay_as_they_were_and_greedy_proves_nothing(shop: Workplace) -> None:
    words = ["--kinds", "event,fault", "--no-reduce", "--method", "greedy", "--json"]
    told = json.loads(shop.swarmtest("suite", *words))
    assert all(one["size"] == one["before"] for one in told["tests"])
    assert told["srr"] == 0
    assert told["method"] == "greedy"
    assert not told["proven"]
    assert told["at_least"] is None


def test_what_is_asked_for_and_not_there_is_told(shop: Workplace) -> None:
    error = shop.swarmtest("suite", "--target", "line:nothing*", "--faults", "none", status=2)
    assert error == "swarmtest: campaign 1 has hit nothing that line:nothing* match"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--keep", "0"], "--keep is a percentage above 0, up to 100, not 0"),
        (["--keep", "101"], "--keep is a percentage above 0, up to 100, not 101"),
        (["--keep", "nan"], "--keep is a percentage above 0, up to 100, not nan"),
        (["--keep-parts", "-3"], "--keep-parts is a percentage above 0, up to 100, not -3"),
        (["-o", "nowhere/test_x.py"], "nowhere/test_x.py: there is no directory nowhere"),
        (["-o", "tests/test_x.txt"], "tests/test_x.txt: a suite is a Python file (.py)"),
        (["-o", "shop.py"], "shop.py was not made by `swarmtest suite`: use --force"),
        (["9"], "no campaign 9"),
        (["--time", "0s"], "'0s' is not a duration above 0"),
        (["--method", "magic"], "'magic' is not one of 'exact', 'greedy'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(
    shop: Workplace,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(shop.path)
    monkeypatch.setattr(sys, "argv", ["swarmtest", "suite", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert said in error
    assert len(error.splitlines()) == 1
