"""`swarmtest focus`: new random tests that hit chosen code more often, and what is told of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_repository import Repository, needs_git, repository  # noqa: F401
from shop_in_a_repository import CART, WITH_REBATE, open_shop

pytestmark = needs_git

Run = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., str]
REBATE = 20
"""The line of the cart where the coupon counts."""


@pytest.fixture
def shop(repository: Repository) -> Repository:  # noqa: F811
    return open_shop(repository)


def told(run: Run, shop: Repository, *arguments: object) -> dict[str, Any]:
    """What a focus tells as JSON; one worker, so that what is learnt comes in the same order."""
    done = run("focus", "machine.py", "-j", 1, "--json", *arguments, cwd=shop.place)
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def baseline(run: Run, shop: Repository) -> None:
    done = run("run", "machine.py", "--coverage", "line", "-s", "coin", "-n", 2000, cwd=shop.place)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("strategy", ["adaptive", "portfolio", "half-swarm", "triggers-only"])
def test_a_line_is_hit_several_times_as_often(
    swarmtest: Run, shop: Repository, strategy: str
) -> None:
    baseline(swarmtest, shop)
    found = told(swarmtest, shop, "--line", f"shop/cart.py:{REBATE}", "-n", 1000, "-s", strategy)
    (target,) = found["targets"]
    assert target["target"] == f"line:shop/cart.py:{REBATE}"
    assert target["triggers"] == ["add", "total", "use"]
    assert target["suppressors"] == ["clear", "remove"]
    # 2,050 undirected tests hit it about 7% of the time: a standard deviation of 0.6%.
    assert target["directed"]["hits"] > 3 * 0.09 * target["directed"]["tests"]


def test_without_data_a_baseline_is_run_and_said(swarmtest: Run, shop: Repository) -> None:
    done = swarmtest(
        "focus", "machine.py", "--line", f"shop/cart.py:{REBATE}", "-n", 500, cwd=shop.place
    )
    assert done.stdout.startswith("no data yet: a baseline first, 2,000 tests")
    assert "baseline: campaign 1, 2,000 tests, 0 distinct faults" in done.stdout
    assert "roles from campaign 1" in done.stdout
    assert done.returncode == 0


def test_tests_without_variation_are_no_data(swarmtest: Run, shop: Repository) -> None:
    swarmtest("run", "machine.py", "--coverage", "line", "-s", "all-on", "-n", 50, cwd=shop.place)
    done = swarmtest(
        "focus", "machine.py", "--line", f"shop/cart.py:{REBATE}", "-n", 200, cwd=shop.place
    )
    assert "left no feature to chance, so they show no triggers: a baseline first" in done.stdout


def test_tests_without_coverage_are_no_data_for_a_line(swarmtest: Run, shop: Repository) -> None:
    swarmtest("run", "machine.py", "-s", "coin", "-n", 200, cwd=shop.place)
    done = swarmtest(
        "focus", "machine.py", "--line", f"shop/cart.py:{REBATE}", "-n", 200, cwd=shop.place
    )
    assert "earlier campaigns watched no lines: a baseline first" in done.stdout


def test_new_code_is_aimed_at_through_what_leads_to_it(swarmtest: Run, shop: Repository) -> None:
    baseline(swarmtest, shop)
    shop.write("shop/cart.py", '"""A cart."""\n' + WITH_REBATE)
    found = told(swarmtest, shop, "--diff", "HEAD", "-n", 1000, "-s", "half-swarm")
    by_line = {target["line"]: target for target in found["targets"]}
    call, *new = sorted(by_line)
    assert by_line[call]["mapped"] == "line 20 then, edited since"
    for line in new:
        assert f"line {call}, the call of rebate() in Cart.total" in by_line[line]["stand_in"]
        assert by_line[line]["directed"]["hits"] > 0
    assert by_line[call]["triggers"] == ["add", "total", "use"]


def test_a_fault_that_the_change_brought_is_new(swarmtest: Run, shop: Repository) -> None:
    baseline(swarmtest, shop)
    shop.write("shop/cart.py", WITH_REBATE)
    shop.commit("a rebate")
    done = swarmtest("focus", "machine.py", "--diff", "HEAD~1", "-n", 1000, cwd=shop.place)
    assert done.returncode == 1
    assert "new fault" in done.stdout
    assert "AssertionError: too much [Cart.rebate: assert total < 45]" in done.stdout
    assert done.stdout.rstrip().endswith("focus: 1 new fault; 5 of 5 changed lines hit")


def test_a_fault_that_was_there_before_is_old_and_no_reason_to_fail(
    swarmtest: Run, shop: Repository
) -> None:
    shop.write("shop/cart.py", WITH_REBATE)
    shop.commit("a rebate")
    shop.write("shop/cart.py", WITH_REBATE.replace("return 20", "return 21"))
    done = swarmtest("focus", "machine.py", "--diff", "HEAD", "-n", 500, cwd=shop.place)
    assert "old fault" in done.stdout, done.stdout
    assert done.returncode == 0


def test_the_base_version_is_left_as_it_was(swarmtest: Run, shop: Repository) -> None:
    shop.write("shop/cart.py", WITH_REBATE)
    before = shop.git("status", "--short"), shop.git("worktree", "list"), shop.git("branch")
    done = swarmtest("focus", "machine.py", "--diff", "HEAD", "-n", 500, cwd=shop.place)
    assert "new fault" in done.stdout
    assert (shop.git("status", "--short"), shop.git("worktree", "list"), shop.git("branch")) == (
        before
    )


def test_a_line_that_most_tests_hit_is_not_aimed_at(swarmtest: Run, shop: Repository) -> None:
    done = swarmtest("focus", "machine.py", "--line", "shop/cart.py:4", "-n", 300, cwd=shop.place)
    assert "every target is hit often anyway, so the tests are not directed" in done.stdout
    assert "dropped from focus, 1 target: shop/cart.py:4 (hit by 100% of the tests anyway)" in (
        done.stdout
    )
    assert done.returncode == 0


def test_a_renamed_file_keeps_its_data(swarmtest: Run, shop: Repository) -> None:
    baseline(swarmtest, shop)
    shop.git("mv", "shop/cart.py", "shop/basket.py")
    machine = (shop.place / "machine.py").read_text()
    shop.write("machine.py", machine.replace("shop.cart", "shop.basket"))
    shop.commit("another name")
    found = told(swarmtest, shop, "--line", f"shop/basket.py:{REBATE}", "-n", 300)
    (target,) = found["targets"]
    assert target["mapped"] == "called shop/cart.py then"
    assert target["triggers"] == ["add", "total", "use"]
    assert target["directed"]["hits"] > 0


def test_a_fault_is_shown_more_often(swarmtest: Run, shop: Repository) -> None:
    shop.write("shop/cart.py", WITH_REBATE)
    swarmtest("run", "machine.py", "-s", "coin", "-n", 2000, cwd=shop.place)
    listed = swarmtest("faults", "--json", cwd=shop.place).stdout
    fault = json.loads(listed.splitlines()[0])["id"]
    found = told(swarmtest, shop, "--fault", fault[:4], "-n", 1000)
    (target,) = found["targets"]
    assert target["target"] == f"fault:{fault}"
    assert target["directed"]["hits"] * target["undirected"]["tests"] > 3 * (
        target["undirected"]["hits"] * target["directed"]["tests"]
    )


def test_rare_lines_are_found_without_naming_them(swarmtest: Run, shop: Repository) -> None:
    baseline(swarmtest, shop)
    found = told(swarmtest, shop, "--rare", "-n", 500)
    assert [target["line"] for target in found["targets"]] == [REBATE]


def test_a_function_and_a_list_of_targets(swarmtest: Run, shop: Repository) -> None:
    baseline(swarmtest, shop)
    (shop.place / "wanted.txt").write_text(f"# the coupon\nshop/cart.py:{REBATE}\n")
    found = told(
        swarmtest, shop, "--function", "shop.cart:Cart.remove", "--targets-from", "wanted.txt",
        "-n", 300,
    )  # fmt: skip
    assert sorted(target["line"] for target in found["targets"]) == [11, 12, REBATE]


def test_an_interrupted_focus_goes_on(swarmtest: Run, shop: Repository) -> None:
    baseline(swarmtest, shop)
    told(swarmtest, shop, "--line", f"shop/cart.py:{REBATE}", "-n", 200)
    done = swarmtest("resume", "-n", 400, "--json", cwd=shop.place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["progress"]["tests"] == 400


def test_what_ci_reads_is_written(swarmtest: Run, shop: Repository) -> None:
    shop.write("shop/cart.py", WITH_REBATE)
    done = swarmtest(
        "focus", "machine.py", "--diff", "HEAD", "-n", 500, "--junit", "j.xml", "--sarif",
        "s.sarif", "--markdown", "m.md", "--github", cwd=shop.place,
        GITHUB_STEP_SUMMARY=str(shop.place / "summary.md"),
    )  # fmt: skip
    assert "::error file=shop/cart.py,line=" in done.stdout
    assert 'failures="1"' in (shop.place / "j.xml").read_text()
    assert json.loads((shop.place / "s.sarif").read_text())["version"] == "2.1.0"
    summary = (shop.place / "m.md").read_text()
    assert "1 new fault" in summary
    assert (shop.place / "summary.md").read_text().strip() == summary.strip()


def test_a_change_that_no_test_can_reach_is_refused_unless_allowed(
    swarmtest: Run, shop: Repository, refused: Refused
) -> None:
    shop.write("README.md", "a shop\n")
    arguments = ("focus", "machine.py", "--diff", "HEAD", "-n", 100)
    refused(swarmtest(*arguments, cwd=shop.place), "README.md")
    allowed = swarmtest(*arguments, "--allow-nothing", cwd=shop.place)
    assert allowed.returncode == 0
    assert allowed.stdout.startswith("nothing to aim at: --diff HEAD")


def test_a_target_that_was_never_hit_fails_the_run_if_that_is_asked(
    swarmtest: Run, shop: Repository
) -> None:
    never = CART.replace("            total -= 10\n", "            total -= 10\n") + (
        "\n    def spare(self):\n        return 0\n"
    )
    shop.write("shop/cart.py", never.replace("self.coupon = coupon", "self.coupon = coupon or 0"))
    arguments = ("focus", "machine.py", "--diff", "HEAD", "-n", 200, "--require-hits")
    assert swarmtest(*arguments, cwd=shop.place).returncode == 0
    never = never.replace(
        "total -= 10", "total -= 10\n            if total > 999:\n                total = 0"
    )
    shop.write("shop/cart.py", never)
    assert swarmtest(*arguments, cwd=shop.place).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["name what to aim at", "--line FILE:LINE", "--diff REV"]),
        (["--line", "shop/cart.py:999"], ["shop/cart.py:999"]),
        (["--line", "shop/crt.py:3"], ["shop/crt.py", "shop/cart.py"]),
        (["--line", "shop/cart.py:6"], ["cart.py:6 is blank", "5 and 8"]),
        (["--function", "shop.cart:Cart.totl"], ["Cart.totl", "Cart.total"]),
        (["--diff", "mian"], ["mian", "main"]),
        (["--diff", "HEAD"], ["nothing was changed"]),
        (["--fault", "deadbeef"], ["deadbeef"]),
        (["--mutant", "17"], ["mutant:17"]),
        (["--target", "event:nothing"], ["event:nothing"]),
        (["--line", "shop/cart.py:20", "-s", "half"], ["half", "half-swarm"]),
        (["--line", "shop/cart.py:20", "-s", "half-swarm", "--merge", "x"], ["'x'", "aggressive"]),
        (["--line", "shop/cart.py:20", "--merge", "aggressive"], ["--merge"]),
        (["--line", "shop/cart.py:20", "--hot", "0"], ["--hot"]),
        (["--line", "shop/cart.py:20", "--control", "2"], ["control"]),
        (["--line", "shop/cart.py:20", "--baseline-tests", "0"], ["--baseline-tests"]),
        (["--targets-from", "nothing.txt"], ["nothing.txt"]),
        (["--line", "shop/cart.py:20", "--junit", "no/such/place.xml"], ["no/such/place.xml"]),
    ],
)
def test_bad_input_gets_one_clear_line(
    swarmtest: Run, shop: Repository, refused: Refused, arguments: list[str], words: list[str]
) -> None:
    done = swarmtest(
        "focus", "machine.py", "-n", 100, "--baseline-tests", 100, *arguments, cwd=shop.place
    )
    refused(done, *words)


def test_a_line_that_nothing_leads_to_is_refused(
    swarmtest: Run, shop: Repository, refused: Refused
) -> None:
    shop.write("shop/cart.py", CART + "\n    def spare(self):\n        return 0\n")
    line = len((CART + "\n    def spare(self):\n        return 0\n").splitlines())
    done = swarmtest("focus", "machine.py", "--line", f"shop/cart.py:{line}", cwd=shop.place)
    refused(done, f"line:shop/cart.py:{line} cannot be aimed at", "--baseline-tests")


def test_without_git_a_diff_is_refused_and_a_line_is_not(
    swarmtest: Run, shop: Repository, refused: Refused, tmp_path: Path
) -> None:
    nowhere = str(tmp_path / "empty")
    Path(nowhere).mkdir()
    done = swarmtest("focus", "machine.py", "--diff", "HEAD", cwd=shop.place, PATH=nowhere)
    refused(done, "git is not installed", "--line")
    arguments = ("focus", "machine.py", "--line", f"shop/cart.py:{REBATE}", "-n", 100)
    assert swarmtest(*arguments, cwd=shop.place, PATH=nowhere).returncode == 0
