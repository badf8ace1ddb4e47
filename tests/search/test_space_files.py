"""Spaces in TOML files and Python files, and what is wrong with some."""

from pathlib import Path

import pytest

from swarmtest import UserError
from swarmtest.race import ThreadsSubject
from swarmtest.search import Search, SearchSpace, load_space

HARNESS = """
from swarmtest import Integer, Test
from swarmtest.search import SearchSpace

def sell(threads, noise, halt=False):
    assert threads < 4 or noise != "sleep", "oversold"
    return {"sold": threads, "hits": [noise]}

space = SearchSpace([Integer("n", 1, 3), Test("test", ["t"])], {"t": lambda n: {"n": n}})
"""

SPACE = """
name = "airlines"

[dimensions]
threads = { kind = "integer", low = 2, high = 8, step = 2 }
noise = { kind = "choice", values = ["none", "sleep", "yield"] }
halt = { kind = "flag" }
test = { kind = "test", values = ["sell"] }

[tests.sell]
run = "harness.py::sell"
repeat = { runs = 4, failed = true, saturation = { last = 2 } }

[search]
forbid = ["halt and noise == 'none'"]
fitness = "sold"
engine = "sequential"
points = 100
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "harness.py").write_text(HARNESS)
    (tmp_path / "space.toml").write_text(SPACE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "harness", raising=False)
    yield tmp_path
    __import__("sys").modules.pop("harness", None)


def test_a_file_describes_a_space_and_its_search(place):
    file = load_space("space.toml")
    assert (file.space.name, file.space.size) == ("airlines", 24)
    outcome = Search(file.space, store=":memory:", **file.search).run()
    assert outcome.progress.points == 20  # 4 x 5 points that are not forbidden
    assert outcome.best == {"threads": 8, "noise": "none", "halt": False, "test": "sell"}
    # Repeated until nothing new came in 2 runs, or until the first failure.
    assert outcome.progress.runs == 3 * 14 + 6
    assert [fault.signature for fault in outcome.faults] == [
        "AssertionError: oversold [sell: assert threads < 4 or noise != 'sleep']"
    ]


def test_a_file_in_another_directory_finds_what_lies_beside_it(place, monkeypatch):
    (place / "elsewhere").mkdir()
    monkeypatch.chdir(place / "elsewhere")
    assert load_space("../space.toml").space.size == 24


def test_a_space_is_an_object_of_a_python_file(place):
    assert load_space("harness.py::space").space.size == 3


def test_commands_and_tasks_stand_in_files_too(place):
    (place / "commands.toml").write_text(
        """
[dimensions]
n = { kind = "integer", low = 1, high = 3 }
test = { kind = "test", values = ["count"] }
[tests.count]
command = "cat before; test {n} -lt 3"
seconds = 5
before = "echo measure n={n} > before"
after = "rm before"
[search]
before = "touch began"
fitness = "n"
"""
    )
    file = load_space("commands.toml")
    outcome = Search(file.space, "sequential", store=":memory:", **file.search).run()
    assert outcome.progress.failed == 1
    assert outcome.progress.best_score == (3.0,)
    assert (place / "began").exists()
    assert not (place / "before").exists()


def test_the_tests_of_a_suite_are_the_values_of_the_test_dimension(place):
    (place / "test_suite.py").write_text("def test_a(): pass\ndef test_b(point): pass\n")
    (place / "suite.toml").write_text(
        '[dimensions]\nn = { kind = "integer", low = 1, high = 2 }\n'
        'test = { kind = "test", pytest = "test_suite.py" }\n'
    )
    space = load_space("suite.toml").space
    assert list(space.executors) == ["test_suite.py::test_a", "test_suite.py::test_b"]
    assert space.size == 4


def test_coverage_makes_lines_hits(place):
    (place / "shop.py").write_text(
        "def price(n):\n    if n > 2:\n        return 5 * n\n    return 6 * n\n"
    )
    (place / "drive.py").write_text(
        "import shop\ndef buy(n):\n    return {'price': shop.price(n)}\n"
    )
    (place / "covered.toml").write_text(
        '[dimensions]\nn = { kind = "integer", low = 1, high = 4 }\n'
        'test = { kind = "test", values = ["buy"] }\n'
        '[coverage]\nkinds = "line"\ncover = ["shop"]\n[tests.buy]\nrun = "drive.py::buy"\n'
    )
    file = load_space("covered.toml")
    try:
        outcome = Search(file.space, "sequential", points=2, store=":memory:").run()
        assert outcome.progress.targets == 2  # lines 2 and 4
        outcome = Search(file.space, "sequential", store=":memory:").run()
        assert outcome.progress.targets == 3
    finally:
        assert file.coverage
        file.coverage.uninstall()


TWO_TESTS = (
    '[dimensions]\na = { kind = "test", values = ["x:y"] }\nb = { kind = "test", values = ["z:y"] }'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "space.toml: dimensions: missing: what is searched"),
        (
            SPACE.replace('test = { kind = "test"', 'test = { kind = "tset"'),
            ":8: [dimensions.test]",
        ),
        (
            SPACE.replace('halt = { kind = "flag"', "halt = { "),
            ":7: [dimensions.halt] kind: missing",
        ),
        (SPACE.replace("low = 2", "lo = 2"), ":5: [dimensions.threads] has no key 'lo'; did you"),
        (SPACE.replace("low = 2, high = 8, ", "low = 2, "), "integer 'threads' needs low and high"),
        (SPACE.replace("runs = 4", "runs = 0"), "repeat] runs: a whole number from 1"),
        (SPACE.replace("run = ", "rnu = "), "[tests.sell] has no key 'rnu'; did you mean 'run'"),
        (SPACE.replace("::sell", "::sel"), "has no test 'sel'; did you mean 'sell'"),
        (SPACE.replace("'none'\"", '"'), "forbid 'halt and noise == ' is not an expression"),
        (SPACE.replace('values = ["sell"]', 'values = ["sold"]'), "no value 'sell'; known: sold"),
        (
            '[dimensions]\nn = { kind = "flag" }',
            "exactly one test dimension, and this one has none",
        ),
        (TWO_TESTS, "exactly one test dimension, and this one has 2: a, b"),
    ],
)
def test_a_mistake_in_a_file_is_one_line_that_says_where(place, text, message):
    (place / "space.toml").write_text(text)
    with pytest.raises(UserError) as error:
        load_space("space.toml")
    assert message in str(error.value)
    assert str(error.value).startswith("space.toml") or "harness" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("harness.py", "name a space in it, like harness.py::space"),
        ("harness.py::sell", "is a function, not a SearchSpace"),
        ("harness.py::spaec", "has no space 'spaec'; did you mean 'space'"),
        ("nowhere.toml", "cannot read nowhere.toml"),
    ],
)
def test_a_space_that_is_not_there_is_said(place, reference, message):
    with pytest.raises(UserError, match=message):
        load_space(reference)


RACED = """
[dimensions]
scheduler = {{ kind = "choice", values = ["random-walk", "pct"] }}
noise = {{ kind = "choice", values = ["none", "{noise}"] }}
test = {{ kind = "test", values = ["shop"] }}
[tests.shop]
race = "shop.py::sell_out"
"""
SHOP = """
import threading

def sell_out():
    left = 1
    def sell():
        nonlocal left
        left -= bool(left)
    threads = [threading.Thread(target=sell) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left == 0
"""


def raced_space(noise: str) -> SearchSpace:
    Path("shop.py").write_text(SHOP)
    Path("races.toml").write_text(RACED.format(noise=noise))
    return load_space("races.toml").space


def test_a_test_may_be_a_program_whose_threads_a_point_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    space = raced_space("yield")
    executor = space.executors["shop"]
    point = space.configuration({"scheduler": "pct", "noise": "none"})
    noisy = space.configuration({"scheduler": "pct", "noise": "yield"})
    used = [
        {name for name, is_used in zip(features, result.used, strict=True) if is_used}
        for features in [ThreadsSubject("shop.py::sell_out").space.feature_names]
        for result in (
            *executor.run(point, iter([1])),
            *executor.run(noisy, iter([1])),
        )
    ]
    assert used == [{"pct"}, {"yield"}]


def test_an_unknown_noise_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space = raced_space("yeild")
    point = space.configuration({"noise": "yeild"})
    with pytest.raises(UserError, match="did you mean 'yield'"):
        space.executors["shop"].run(point, iter([1]))
