"""What `swarmtest focus` says when the data, the change or the fault is not what it hoped for."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_repository import Repository, needs_git, repository  # noqa: F401
from shop_in_a_repository import CART, MACHINE, WITH_REBATE, open_shop

from swarmtest.focus.focus import _about_merging
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.directed import Controlled, Directed
from swarmtest.strategies.directed.merging import Merging

pytestmark = needs_git

Run = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[..., str]
COUPON = "shop/cart.py:20"


@pytest.fixture
def shop(repository: Repository) -> Repository:  # noqa: F811
    return open_shop(repository)


@pytest.fixture
def known_shop(shop: Repository, swarmtest: Run) -> Repository:
    """With data of 1,000 undirected tests."""
    done = swarmtest("run", "machine.py", "--coverage", "line", "-s", "coin", "-n", 1000,
                     cwd=shop.place)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return shop


def focus(run: Run, shop: Repository, *arguments: object, **env: str) -> Any:
    return run(
        "focus", "machine.py", "-s", "half-swarm", "-j", 1, *arguments, cwd=shop.place, **env
    )


def told(run: Run, shop: Repository, *arguments: object) -> dict[str, Any]:
    done = focus(run, shop, "--json", *arguments)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# Time and what is shown


def test_the_time_is_for_baseline_and_directed_tests_together(
    swarmtest: Run, shop: Repository
) -> None:
    done = focus(swarmtest, shop, "--line", COUPON, "--time", "40s", "-n", 100)
    assert "a baseline first, 2,000 tests or 10 s" in done.stdout
    seconds = re.search(r"until 100 tests or ([\d.]+) s", done.stdout)
    assert seconds, done.stdout
    assert 0 < float(seconds[1]) < 40


def test_a_strategy_is_named_as_it_is_asked_for(swarmtest: Run, known_shop: Repository) -> None:
    done = focus(swarmtest, known_shop, "--line", COUPON, "-n", 50, "--merge", "subsumption")
    assert "strategy half-swarm, merge subsumption, seed 1" in done.stdout
    assert "1 of 1 target aimed at" in done.stdout


def test_a_fault_is_called_new_only_when_the_base_version_was_asked(
    swarmtest: Run, shop: Repository
) -> None:
    shop.write("shop/cart.py", WITH_REBATE)
    done = focus(swarmtest, shop, "--diff", "HEAD", "-n", 300)
    before, _, after = done.stdout.partition("of each fault on HEAD too")
    assert len(re.findall("^fault [0-9a-f]+: AssertionError", before, re.MULTILINE)) == 1
    assert "new fault" not in before
    assert "new fault" in after


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ("a baseline first", "interrupted: they are kept, and the next focus uses them"),
        ("aimed at, strategy", "interrupted: everything is kept, `swarmtest resume 2` continues"),
    ],
)
def test_an_interrupted_focus_says_how_to_go_on(
    start: Callable[..., subprocess.Popen[str]], known_shop: Repository, until: str, words: str
) -> None:
    known_shop.write("shop/cart.py", WITH_REBATE)
    fresh = ["--fresh", "--baseline-tests", 10**6] if "baseline" in until else []
    process = start(
        "focus", "machine.py", "--diff", "HEAD", "-s", "half-swarm", "--time", "50s", "-j", 1,
        *fresh, cwd=known_shop.place,
    )  # fmt: skip
    assert process.stdout
    for line in process.stdout:
        if until in line:
            break
    # A fault is told while tests are run: then it is time to stop.
    assert process.stdout.readline().startswith("fault ")
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(timeout=60) == 130
    assert words in rest
    assert "of each fault on HEAD too" not in rest


# Data


def test_features_that_have_changed_since_are_named(swarmtest: Run, known_shop: Repository) -> None:
    known_shop.write("machine.py", MACHINE.replace("def clear(self)", "def wipe(self)"))
    done = focus(swarmtest, known_shop, "--line", COUPON, "-n", 50, "--baseline-tests", 200)
    assert done.stdout.startswith(
        "the features have changed since campaign 1 (new: wipe; gone: clear): a baseline first"
    )


def test_data_of_another_copy_of_the_project_is_about_this_one(
    swarmtest: Run, known_shop: Repository, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(known_shop.place, copy)
    done = swarmtest(
        "focus", "machine.py", "--rare", "--json", "-n", 50, "-s", "half-swarm", cwd=copy
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert [target["file"] for target in found["targets"]] == ["shop/cart.py"], found["unusable"]


def test_a_branch_is_not_counted_as_its_line(swarmtest: Run, shop: Repository) -> None:
    swarmtest("run", "machine.py", "--coverage", "line,branch", "-s", "coin", "-n", 1000,
              cwd=shop.place)  # fmt: skip
    found = told(swarmtest, shop, "--target", "branch:shop/cart.py:19->20", "-n", 200)
    (target,) = found["targets"]
    # The line is hit by half of the tests, the branch by one in twenty.
    assert target["undirected"]["hits"] < 0.5 * target["undirected"]["tests"]
    assert target["undirected"]["tests"] == 1_010  # those of the campaign, and this run's own


def test_earlier_tests_of_the_same_code_are_counted_beside_older_data(
    swarmtest: Run, known_shop: Repository
) -> None:
    known_shop.write("shop/cart.py", f'"""A cart."""\n{CART}')
    swarmtest("run", "machine.py", "--coverage", "line", "-s", "coin", "--seed", 1, "-n", 300,
              cwd=known_shop.place)  # fmt: skip
    (target,) = told(swarmtest, known_shop, "--line", "shop/cart.py:21", "-n", 200)["targets"]
    assert target["undirected"]["tests"] == 300 + 10


# Changes


def test_a_changed_comment_is_no_change(swarmtest: Run, shop: Repository, refused: Refused) -> None:
    shop.write("shop/cart.py", CART.replace("total -= 10", "total -= 10  # the coupon"))
    refused(focus(swarmtest, shop, "--diff", "HEAD"), "nothing that is executed was changed")


def test_what_runs_at_import_needs_no_more_tests(
    swarmtest: Run, known_shop: Repository, refused: Refused
) -> None:
    known_shop.write("shop/cart.py", f"import os\n{CART}")
    line = refused(focus(swarmtest, known_shop, "--diff", "HEAD"), "imported, before any test")
    assert "run more tests" not in line


def test_a_file_that_no_test_imports_is_said(
    swarmtest: Run, known_shop: Repository, refused: Refused
) -> None:
    known_shop.write("tests/test_cart.py", "def test_cart():\n    assert 1\n")
    refused(focus(swarmtest, known_shop, "--diff", "HEAD"), "no test imported its file")


def test_a_changed_machine_is_watched_if_named(
    swarmtest: Run, known_shop: Repository, refused: Refused
) -> None:
    changed = MACHINE.replace("        self.cart.total()", "        assert self.cart.total() < 70")
    known_shop.write("machine.py", changed)
    refused(focus(swarmtest, known_shop, "--diff", "HEAD"), "the harness", "--cover machine.py")
    done = focus(swarmtest, known_shop, "--diff", "HEAD", "--cover", "machine.py", "-n", 100)
    assert done.stdout.startswith("earlier campaigns did not watch machine.py: a baseline first")
    assert "1 of 1 changed line hit" in done.stdout


def test_a_new_file_that_is_imported_late_is_aimed_at(
    swarmtest: Run, known_shop: Repository
) -> None:
    known_shop.write("shop/tax.py", "def tax(total):\n    return total // 10\n")
    late = "            from shop.tax import tax\n            total -= tax(total)\n"
    known_shop.write("shop/cart.py", CART.replace("            total -= 10\n", late))
    found = told(swarmtest, known_shop, "--diff", "HEAD", "-n", 200)
    by_name = {target["target"]: target for target in found["targets"]}
    tax, first = by_name["line:shop/tax.py:2"], by_name["line:shop/cart.py:20"]
    assert "shop/cart.py:21, the call of tax() in Cart.total" in tax["stand_in"]
    assert "line 21, which follows in the same block" in first["stand_in"]
    # Undirected tests hit it about one time in twenty.
    assert tax["directed"]["hits"] > 0.4 * tax["directed"]["tests"]


# Faults


def test_a_fault_of_another_subject_names_it(
    swarmtest: Run, known_shop: Repository, refused: Refused
) -> None:
    known_shop.write("shop/cart.py", WITH_REBATE)
    known_shop.write("other.py", MACHINE.replace("CartMachine", "Other"))
    swarmtest("run", "other.py", "-s", "coin", "-n", 1000, cwd=known_shop.place)
    id = json.loads(swarmtest("faults", "--json", cwd=known_shop.place).stdout.splitlines()[0])[
        "id"
    ]
    done = focus(swarmtest, known_shop, "--fault", id)
    refused(done, f"swarmtest focus other.py::Other --fault {id}")


def test_a_fault_that_only_directed_tests_found_is_aimed_at_where_it_showed(
    swarmtest: Run, known_shop: Repository
) -> None:
    known_shop.write("shop/cart.py", WITH_REBATE)
    (fault,) = told(swarmtest, known_shop, "--diff", "HEAD", "-n", 200)["faults"]
    (target,) = told(swarmtest, known_shop, "--fault", fault["id"], "-n", 200)["targets"]
    assert "the call of rebate() in Cart.total" in target["stand_in"]
    assert target["directed"]["hits"] > 10


def test_a_flaky_fault_is_not_called_new(swarmtest: Run, shop: Repository, tmp_path: Path) -> None:
    # Every other run fails: a file counts them.
    count = tmp_path / "count"
    count.touch()
    check = f'with open("{count}", "a") as f: f.write("x"); assert f.tell() % 2, "too much"'
    flaky = WITH_REBATE.replace('assert total < 45, "too much"', check)
    shop.write("shop/cart.py", flaky)
    (fault,) = told(swarmtest, shop, "--diff", "HEAD", "-n", 200, "--baseline-tests", 500)["faults"]
    assert fault["status"] == "unknown"
    assert re.search(r"flaky: it fails in \d of 5 runs", fault["why_unknown"])


def test_a_base_version_that_cannot_be_imported_is_named_as_in_the_repository(
    swarmtest: Run, shop: Repository
) -> None:
    shop.write("shop/cart.py", "def (\n")
    shop.commit("broken")
    shop.write("shop/cart.py", WITH_REBATE)
    (fault,) = told(swarmtest, shop, "--diff", "HEAD", "-n", 200, "--baseline-tests", 500)["faults"]
    assert fault["why_unknown"] == (
        "the base version cannot run it: cannot import shop/cart.py:1: invalid syntax"
    )


# Output


def test_a_place_that_cannot_be_written_is_refused_before_the_tests(
    swarmtest: Run, shop: Repository, refused: Refused
) -> None:
    done = focus(swarmtest, shop, "--line", COUPON, "--junit", "no/such/place.xml")
    refused(done, "no/such/place.xml", "no directory")
    assert not done.stdout
    summary = {"GITHUB_STEP_SUMMARY": "/no/such/place.md"}
    refused(focus(swarmtest, shop, "--line", COUPON, "--github", **summary), "/no/such/place.md")


def test_what_ci_reads_is_written_also_when_there_is_nothing_to_aim_at(
    swarmtest: Run, shop: Repository
) -> None:
    shop.write("README.md", "a shop\n")
    files = ("--junit", "j.xml", "--sarif", "s.sarif", "--markdown", "m.md")
    done = focus(swarmtest, shop, "--diff", "HEAD", "--allow-nothing", "--json", "--github", *files)
    assert done.returncode == 0, done.stderr
    assert "README.md" in json.loads(done.stdout.splitlines()[0])["unusable"][0]
    assert json.loads((shop.place / "s.sarif").read_text())["runs"][0]["results"] == []
    assert 'failures="0"' in (shop.place / "j.xml").read_text()
    assert "README.md" in (shop.place / "m.md").read_text()


def test_a_merging_that_is_not_known_to_be_smallest_says_so() -> None:
    aims = tuple(Aim((Goal(f"event:{n}"),), {f"f{n}"}) for n in range(3))
    known = Merging(aims, lower_bound=3, how="proven")
    open_ = Merging(aims, lower_bound=2, how="time was up")
    assert _about_merging(Controlled(Directed(aims, merging=known))) == []
    assert _about_merging(Controlled(Directed(aims, merging=open_))) == [
        "targets are merged into 3 aims; 2 might be enough (time was up)"
    ]
