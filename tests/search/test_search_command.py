"""`swarmtest search`, as a real process."""

from __future__ import annotations

import json
import shutil
import sqlite3
import xml.etree.ElementTree as ET
from contextlib import closing
from typing import Any

import pytest

from swarmtest.store import open_store

HARNESS = """
import random

def sell(threads, noise, halt, seed):
    rng = random.Random(seed)
    height = threads * 10 + {"none": 0, "sleep": 400, "yield": 200}[noise]
    if noise == "sleep" and threads == 8 and rng.random() < 0.5:
        raise ValueError("oversold")
    return {"height": height, "hits": [f"level {height + rng.randrange(4)}", noise]}
"""
SPACE = """
[dimensions]
threads = { kind = "integer", low = 2, high = 8, step = 2 }
noise = { kind = "choice", values = ["none", "sleep", "yield"] }
halt = { kind = "flag" }
test = { kind = "test", values = ["sell"] }
[tests.sell]
run = "harness.py::sell"
repeat = { runs = 5 }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest):
    """A directory with one whole exploration in its store."""
    place = tmp_path_factory.mktemp("search")
    (place / "harness.py").write_text(HARNESS)
    (place / "space.toml").write_text(SPACE)
    run = swarmtest("search", "run", "space.toml", "--fitness", "height", cwd=place)
    assert run.returncode == 1, run.stderr  # a fault was found
    (place / "run.txt").write_text(run.stdout)
    return place


def test_a_search_tells_the_best_point_and_the_faults(place):
    text = (place / "run.txt").read_text()
    assert text.startswith("space: 24 points, random, until the engine has nothing left\n")
    assert "campaign 1: 24 points, 120 runs," in text
    assert "best height: 480, at visit" in text
    assert "  threads=8 noise=sleep halt=" in text
    assert "exception: ValueError: oversold [sell]" in text
    assert "all 24 points are explored" in text


def test_correlations_say_which_dimension_matters(place, swarmtest):
    done = swarmtest("search", "correlate", "1", "--measure", "height", cwd=place)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "campaign 1: space, 24 points, 120 runs"
    assert lines[4].startswith("noise ")
    assert lines[6].startswith("halt ")


def test_roles_say_which_values_trigger_the_fault(place, swarmtest):
    done = swarmtest("search", "roles", "1", "--json", cwd=place)
    roles = {(one["dimension"], one["value"]): one["role"] for one in json.loads(done.stdout)}
    assert set(roles.values()) == {"insufficient data"}  # it shows at two points
    shown = swarmtest("search", "roles", "1", "--target", "event:sleep", cwd=place).stdout
    assert "noise=sleep  trigger" in shown


def test_a_best_sequence_is_shorter_than_a_random_one(place, swarmtest):
    done = swarmtest("search", "best-sequence", "1", "--json", cwd=place)
    found = json.loads(done.stdout)
    assert found["steps"][-1]["reached"] == found["total"]
    assert len(found["steps"]) <= min(found["random"])
    assert len(found["random"]) == 100


def test_engines_are_compared_on_what_is_recorded(place, swarmtest):
    words = ["-e", "climb:restarts=0", "-e", "random", "-n", 12, "--repeats", 40]
    done = swarmtest("search", "compare", "1", *words, "--fitness", "height", cwd=place)
    assert done.returncode == 0, done.stderr
    rows = done.stdout.splitlines()[-2:]
    assert [row.split()[0] for row in rows] == ["climb:restarts=0", "random"]
    assert "40 searches each" in done.stdout


def test_a_recorded_exploration_is_searched_again_as_a_campaign(place, swarmtest):
    words = ["--engine", "climb", "--fitness", "height", "--json"]
    done = swarmtest("search", "replay", "1", *words, cwd=place)
    found = json.loads(done.stdout)
    assert (found["points"], found["runs"]) == (24, 120)
    assert found["best_score"] == [480.0]


def test_a_replay_of_a_part_does_not_say_that_all_is_explored(place, swarmtest, tmp_path):
    store = ("--store", tmp_path / "part.db")
    swarmtest("search", "run", "space.toml", "--points", 6, *store, cwd=place)
    done = swarmtest("search", "replay", "1", "--engine", "random", *store, cwd=place)
    assert "all 6 points that were recorded are explored, of 24" in done.stdout


def test_pictures_are_drawn_in_the_terminal_and_as_svg(place, swarmtest):
    shown = swarmtest("search", "plot", "1", "--measure", "height", cwd=place).stdout
    assert "ordered by noise, then threads, then halt" in shown
    assert "|none" in shown
    drawn: list[list[Any]] = [
        ["-o", "space.svg", "--measure", "height"],
        ["-o", "growth.svg", "--growth", "--shoulders", 3],
        ["-o", "points.svg", "--growth", "--point", "noise=none,halt=yes", "--point", "threads=8"],
    ]
    for words in drawn:
        done = swarmtest("search", "plot", "1", *words, cwd=place)
        assert done.returncode == 0, done.stderr
        assert ET.fromstring((place / words[1]).read_text()).tag.endswith("svg")


def test_an_exploration_is_exported(place, swarmtest):
    done = swarmtest("search", "export", "1", cwd=place)
    assert done.stdout.splitlines()[0].startswith("trial,visit,threads,noise,halt,test,status,")
    assert len(done.stdout.splitlines()) == 121
    assert swarmtest("search", "export", "1", "-o", "space.dat", cwd=place).returncode == 0
    assert (place / "space.dat").read_text().startswith("# space: 24 points\n")


def test_repeated_searches_end_with_their_summary(place, swarmtest):
    words = ["-n", 5, "--repeats", 3, "--store", "repeated.db", "--quiet"]
    done = swarmtest("search", "run", "space.toml", "--fitness", "height", *words, cwd=place)
    assert done.returncode in (0, 1), done.stderr
    assert "over all searches" in done.stdout
    assert done.stdout.count("campaign ") >= 3


def test_a_search_goes_on(place, swarmtest):
    words = ["--fitness", "height", "--store", "resumed.db", "--json"]
    first = swarmtest("search", "run", "space.toml", "-n", 5, *words, cwd=place)
    rest = swarmtest("search", "run", "space.toml", "--resume", 1, *words, cwd=place)
    assert json.loads(first.stdout)["points"] == 5
    assert json.loads(rest.stdout)["points"] == 24


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "nowhere.toml"], "cannot read nowhere.toml: No such file or directory"),
        (["run", "space.toml", "-e", "clim"], "unknown engine 'clim'; did you mean 'climb'?"),
        (["run", "space.toml", "--fitness", "x"], "no result has a measure 'x'"),
        (["correlate", "9"], "no campaign 9"),
        (["plot", "1", "--measure", "hight"], "has no measure 'hight'; did you mean 'height'?"),
        (["plot", "1", "--growth"], "--growth draws a file: name it with -o FILE.svg"),
        (["plot", "1", "--by", "nose"], "no dimension 'nose' varies here; did you mean 'noise'?"),
        (["best-sequence", "1", "--kind", "pair"], "no target of kind 'pair' was reached"),
        (["export", "1", "-o", "space.xls"], "the name does not say the format"),
    ],
)
def test_a_mistake_is_one_line(place, swarmtest, words, message):
    done = swarmtest("search", *words, cwd=place)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("end", ["os._exit(0)", "os.abort()", "os.kill(os.getppid(), 9)"])
def test_a_test_that_ends_its_process_fails_and_does_not_end_the_search(end, tmp_path, swarmtest):
    (tmp_path / "shop.py").write_text(f"import os\ndef sell(n):\n    if n == 2: {end}\n")
    (tmp_path / "space.toml").write_text(
        "[dimensions]\nn = { kind = 'integer', low = 1, high = 4 }\n"
        "test = { kind = 'test', values = ['sell'] }\n[tests.sell]\nrun = 'shop.py::sell'\n"
    )
    done = swarmtest("search", "run", "space.toml", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "4 points, 4 runs, 0 targets, 1 fault" in done.stdout


def test_points_that_are_not_in_the_space_are_damage(place, tmp_path, swarmtest, refused):
    store = shutil.copy(place / ".swarmtest" / "swarmtest.db", tmp_path / "s.db")
    with open_store(str(store)) as opened:
        record = opened.campaign(1)
        text = json.dumps(record.space).replace('"yield"', '"other"')
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        connection.execute("UPDATE campaigns SET space = ?", (text,))
    connection.close()
    for words in ("correlate", "roles", "plot -o picture.svg"):
        done = swarmtest("search", *words.split(), "1", "--store", store, cwd=place)
        refused(done, "is damaged: campaign 1, trial", "its configuration cannot be decoded")


def test_another_search_knows_the_fault_and_need_not_fail_for_it(place, swarmtest, tmp_path):
    for name in ("harness.py", "space.toml"):
        shutil.copy(place / name, tmp_path / name)
    words = ("search", "run", "space.toml", "--fitness", "height", "--fail-on", "new")
    done = [swarmtest(*words, cwd=tmp_path), swarmtest(*words, "--seed", "1", cwd=tmp_path)]
    assert [each.returncode for each in done] == [1, 0]
    assert "new fault " in done[0].stderr
    assert "known fault " in done[1].stderr
