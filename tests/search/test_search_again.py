"""What other commands do with searches: go on, run a point again, report, show what was reached."""

import re

import pytest

from swarmtest import Integer, Test, open_store
from swarmtest.search import Search, SearchSpace

HARNESS = """
def sell(threads, loud, seed):
    if threads == 7 and loud:
        raise ValueError("oversold")
    return {"sold": threads * 10, "hits": [f"threads {threads}"]}
"""
SPACE = """
[dimensions]
threads = { kind = "integer", low = 1, high = 8 }
loud = { kind = "flag" }
test = { kind = "test", values = ["sell"] }
[tests.sell]
run = "harness.py::sell"
repeat = { runs = 2 }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest):
    """A directory with two searches: a whole one, and one of four points."""
    place = tmp_path_factory.mktemp("again")
    (place / "harness.py").write_text(HARNESS)
    (place / "space.toml").write_text(SPACE)
    for words in ([], ["--points", "4"]):
        swarmtest("search", "run", "space.toml", "-q", "--fitness", "sold", *words, cwd=place)
    return place


def test_a_search_goes_on_by_resume(place, swarmtest):
    done = swarmtest("resume", "2", "--tests", "6", "-q", cwd=place)
    assert "campaign 2: 6 points, 12 runs" in done.stdout
    assert "best sold:" in done.stdout
    again = swarmtest("search", "export", "1", "-o", "-", cwd=place).stdout.splitlines()
    half = swarmtest("search", "export", "2", "-o", "-", cwd=place).stdout.splitlines()

    def points(lines):
        return [line.split(",")[:5] for line in lines]

    assert points(half) == points(again)[: len(half)]


def test_a_run_of_a_search_is_run_again_by_its_number_or_its_fault(place, swarmtest):
    shown = swarmtest("search", "export", "1", "-o", "-", cwd=place).stdout.splitlines()
    failed = next(line.split(",") for line in shown if ",failed," in line)
    by_number = swarmtest("replay", f"1#{failed[0]}", cwd=place)
    assert by_number.returncode == 1
    assert "threads=7 loud=yes test=sell" in by_number.stdout
    assert by_number.stdout.endswith("ValueError: oversold [sell]\nthe same as recorded\n")
    fault = by_number.stdout.rpartition("fails: fault ")[2][:8]
    by_fault = swarmtest("replay", fault, cwd=place)
    assert by_fault.returncode == 1
    assert by_fault.stdout.endswith("ValueError: oversold [sell]\nthe same as recorded\n")
    passed = swarmtest("replay", "2#0", cwd=place)
    assert passed.returncode == 0
    assert re.search(r"passes: sold \d+, 1 target\nthe same as recorded", passed.stdout)


def test_a_search_has_a_report_of_its_own(place, swarmtest):
    done = swarmtest("report", "1", "-o", "search.html", cwd=place)
    assert done.returncode == 0, done.stderr
    page = (place / "search.html").read_text()
    assert page.count("<svg") == 2
    assert "ValueError: oversold" in page
    assert "What sold depends on" in page
    command = "swarmtest search run space.toml --engine random --fitness sold --keep all"
    assert command in page
    mixed = swarmtest("report", "1", "--figures", "figures", cwd=place)
    assert "`swarmtest search plot` draws" in mixed.stderr


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["coverage", "1"], "what they reached: `swarmtest coverage 1 --targets`"),
        (["reduce", "1#3"], "campaign 1 is a search: `swarmtest replay 1#TRIAL` runs a test"),
        (["replay", "1#3", "--pdb"], "1#3 is a run of a search"),
        (["replay", "1#999"], "has no trial 999"),
        (["resume", "1", "--saturation", "5"], "a search ends after --tests (its points)"),
        (["search", "run", "space.toml", "-e", "climb:restarts=x"], "restarts is a whole number"),
    ],
)
def test_what_makes_no_sense_is_one_line_that_says_what_does(place, swarmtest, words, line):
    done = swarmtest(*words, cwd=place)
    assert done.returncode == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_search_that_python_code_made_goes_on_there(tmp_path, swarmtest):
    space = SearchSpace([Integer("n", 1, 3), Test("test", ["t"])], {"t": lambda n: None})
    with open_store(str(tmp_path / "kept.db")) as store:
        Search(space, store=store).run()
    done = swarmtest("resume", "1", "--store", "kept.db", cwd=tmp_path)
    instead = "call Search(...).run(resume=1) in the program that defines the space of t"
    assert instead in done.stderr
