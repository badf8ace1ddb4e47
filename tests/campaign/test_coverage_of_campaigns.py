"""Campaigns that watch what their tests reach, from the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from swarmtest import Configuration, Coverage, open_store, swarm
from swarmtest.core.targets import unpack_hits

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

SHOP = {
    "shop/__init__.py": "",
    "shop/cart.py": """
import os
from .prices import price_of

LIMITS = [n * 2 for n in range(3)]

class Cart:
    def __init__(self):
        self.items = []

    def add(self, item):
        if len(self.items) == 7:
            raise OverflowError("full")
        self.items.append(price_of(item))

    def drop(self):
        if not self.items:
            return None
        return self.items.pop()

    def crash(self):
        if len(self.items) > 3:
            os.abort()
""",
    "shop/prices.py": """
def price_of(item):
    match item:
        case 0:
            return 0
        case 1 | 2:
            return 10
    return 20
""",
    "harness.py": """
from swarmtest import Machine, action, integers
from shop.cart import Cart

class Shop(Machine):
    steps = 30
    def start(self):
        self.cart = Cart()
    @action(item=integers(0, 3), raises=OverflowError)
    def add(self, item):
        self.cart.add(item)
    @action
    def drop(self):
        if self.cart.drop() is None:
            self.event("empty")

class Crashing(Shop):
    @action
    def crash(self):
        self.cart.crash()
""",
}

ALONE = (
    "from swarmtest import Machine, action\n"
    "class Alone(Machine):\n    @action\n    def go(self):\n        self.done = True\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    for name, text in SHOP.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def run(swarmtest: Run, place: Path) -> Run:
    def go(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = swarmtest(*arguments, cwd=place)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done

    return go


def described(place: Path) -> dict[str, dict[str, object]]:
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        newest = store.campaigns()[-1].id
        return {str(target): vars_of(target) for target in store.watched_targets(newest).values()}


def vars_of(target: object) -> dict[str, object]:
    return {name: getattr(target, name) for name in ("file", "line", "function", "content")}


def test_a_run_tells_how_much_was_reached(run: Run) -> None:
    done = run("run", "harness.py::Shop", "-n", 300, "--coverage", "line,branch")
    assert "coverage: line 22 of 24 (92%), branch 8 of 10 (80%)" in done.stdout


def test_the_harness_is_left_out_and_every_module_of_the_program_is_there(
    run: Run, place: Path
) -> None:
    run("run", "harness.py::Shop", "-n", 20, "--coverage", "line")
    assert {target["file"] for target in described(place).values()} == {
        "shop/cart.py",
        "shop/prices.py",
    }


def test_the_harness_is_watched_when_it_is_named(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 20, "--coverage", "line", "--cover", "harness")
    assert {target["file"] for target in described(place).values()} == {"harness.py"}


def test_a_program_in_the_file_of_its_machine_is_watched(run: Run, place: Path) -> None:
    (place / "alone.py").write_text(ALONE)
    assert "line 5 of 5" in run("run", "alone.py", "-n", 20, "--coverage", "line").stdout


def test_the_summary_names_what_was_watched(run: Run) -> None:
    done = run("run", "harness.py::Shop", "-n", 20, "--coverage", "line")
    for shown in (done.stdout, run("show").stdout):
        assert "watched: shop/cart.py, shop/prices.py\n" in shown
        assert "test file itself" not in shown


def test_a_test_file_that_contains_its_program_is_not_praised(run: Run, place: Path) -> None:
    (place / "tests").mkdir()
    (place / "tests" / "__init__.py").write_text("")
    (place / "tests" / "alone.py").write_text(ALONE)
    done = run("run", "tests/alone.py", "-n", 20, "--coverage", "line")
    told = "nothing to watch besides the test file itself: name the program with --cover"
    for shown in (done.stdout, run("show").stdout):
        assert f"watched: tests/alone.py; {told}" in shown


GOODS = """
def weigh(kind):
    if kind > 7:
        return 2
    return 1
"""

WEIGHING = """
import json, pytest, hypothesis, numpy
from goods import weigh
from swarmtest import Machine, action, integers
{more}
class Weighing(Machine):
    @action(kind=integers(0, 3))
    def weigh(self, kind):
        weigh(kind)
"""


def weighed(start: Start, place: Path, goods: Path, subject: str = "weighing.py") -> str:
    """What a run prints when the module `goods` is in a directory on the path."""
    goods.mkdir(parents=True)
    (goods / "goods.py").write_text(GOODS)
    words = ("run", subject, "-n", 20, "--coverage", "line")
    running = start(*words, cwd=place, PYTHONPATH=f"{goods}:{os.environ.get('PYTHONPATH', '')}")
    out, err = running.communicate(timeout=180)
    assert running.returncode == 0, (out, err)
    return str(out)


@pytest.mark.parametrize("subject", ["weighing.py", "weighing:Weighing"])
def test_an_installed_program_is_watched_and_not_its_test(
    start: Start, place: Path, subject: str
) -> None:
    (place / "weighing.py").write_text(WEIGHING.format(more=""))
    out = weighed(start, place, place / "env" / "site-packages", subject)
    assert "coverage: line 3 of 4 (75%)\n  watched: goods.py\n" in out


def test_an_installed_package_beside_own_code_is_told_of(start: Start, place: Path) -> None:
    (place / "weighing.py").write_text(WEIGHING.format(more="import shop.prices"))
    out = weighed(start, place, place / "env" / "site-packages")
    assert "  watched: shop/prices.py\n" in out
    assert "  not watched, because installed: goods (--cover goods)\n" in out


def test_own_code_in_another_directory_of_the_path_is_watched(
    start: Start, place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (place / "weighing.py").write_text(WEIGHING.format(more=""))
    out = weighed(start, place, tmp_path_factory.mktemp("elsewhere") / "lib")
    assert "watched: goods.py\n" in out


def test_targets_know_where_they_are(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 20, "--coverage", "line,branch,path")
    found = described(place)
    assert found["line:shop/cart.py:13"]["function"] == "Cart.add"
    assert found["branch:shop/cart.py:12->13"]["line"] == 12
    assert {t["function"] for n, t in found.items() if n.startswith("path:shop/prices")} == {
        "price_of"
    }


def test_hits_do_not_depend_on_workers(
    run: Run, place: Path, rows: Callable[..., list[dict[str, object]]]
) -> None:
    for workers in (0, 1, 2):
        kinds = "line,block,branch,predicate,path,prime,du"
        run("run", "harness.py::Shop", "-n", 200, "-j", workers, "--coverage", kinds)
    store = place / ".swarmtest" / "swarmtest.db"
    inline, one, two = (rows(store, campaign) for campaign in (1, 2, 3))
    assert inline == one == two
    assert any("event:empty" in row["hits"] for row in one)  # type: ignore[operator]
    assert any("path:shop/prices.py:price_of#" in str(row["hits"]) for row in one)


def test_a_resumed_campaign_goes_on_watching(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 50, "--coverage", "line")
    run("resume", "-n", 100)
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        assert all(trial.hits for trial in store.trials(1))
        assert store.summary(1)["trials"] == 100


def test_a_campaign_does_not_go_on_after_its_program_was_edited(
    run: Run, swarmtest: Run, place: Path, refused: Callable[..., str]
) -> None:
    run("run", "harness.py::Shop", "-n", 50, "--coverage", "line")
    file = place / "shop" / "prices.py"
    before = file.read_text()
    file.write_text(before.replace("20", "30"))
    done = swarmtest("resume", "-n", 100, cwd=place)
    refused(done, "shop/prices.py has changed since the campaign began", "start a new one")
    file.write_text(before)
    run("resume", "-n", 100)
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        assert store.summary(1)["trials"] == 100
        paths = [source.path for source in store.sources(1)]
        assert paths == ["shop/__init__.py", "shop/cart.py", "shop/prices.py"]


def test_the_same_source_has_the_same_ids_in_another_campaign(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 30, "--coverage", "line")
    run("run", "harness.py::Shop", "-n", 30, "--seed", 1, "--coverage", "line")
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        assert store.watched_targets(1) == store.watched_targets(2)


def test_an_edited_file_has_other_targets_that_are_found_by_content(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 30, "--coverage", "line")
    before = described(place)["line:shop/prices.py:7"]
    file = place / "shop" / "prices.py"
    file.write_text("# a comment\n\n" + file.read_text())
    run("run", "harness.py::Shop", "-n", 30, "--coverage", "line")
    after = described(place)["line:shop/prices.py:9"]
    assert (before["content"], before["function"]) == (after["content"], after["function"])
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        old, new = ({t.source for t in store.watched_targets(n).values()} for n in (1, 2))
        assert len(old & new) == 1  # shop/cart.py did not change


def test_an_old_campaign_shows_the_file_as_it_was(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 30, "--coverage", "line")
    (place / "shop" / "prices.py").write_text("def price_of(item):\n    return 1\n")
    shown = run("coverage", "--show", "shop/prices.py").stdout
    assert "match item:" in shown


def test_a_test_that_kills_its_process_counts_and_its_coverage_is_missing(
    run: Run, place: Path
) -> None:
    options = ("-n", 60, "--coverage", "line", "-j", 1)
    run("run", "harness.py::Crashing", *options, status=1)
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        trials = list(store.trials(1))
    assert len(trials) == 60
    assert {bool(trial.missing) for trial in trials if trial.fault} == {True}
    assert all(trial.hits and not trial.missing for trial in trials if not trial.fault)
    crashed = sum(bool(trial.missing) for trial in trials)
    assert f"coverage of {crashed} tests is missing" in run("coverage").stdout


def test_the_end_of_a_run_tells_how_many_tests_have_no_coverage(run: Run) -> None:
    options = ("-n", 60, "--coverage", "line", "-j", 1)
    done = run("run", "harness.py::Crashing", *options, status=1)
    assert re.search(r"coverage of \d+ tests is missing: their process died before", done.stdout)
    assert "tests is missing" in run("coverage", "--show", "shop/cart.py").stdout
    assert "tests is missing" in run("coverage", "-o", "out.json").stdout


def test_another_campaign_on_the_same_source_does_not_change_what_one_has_reached(
    run: Run,
) -> None:
    kinds = "line,branch,path,prime,du,predicate"
    run("run", "harness.py::Shop", "-n", 1, "--coverage", kinds)
    before = run("coverage", 1, "--targets").stdout, run("coverage", 1).stdout
    run("run", "harness.py::Shop", "-n", 300, "--coverage", kinds)
    assert (run("coverage", 1, "--targets").stdout, run("coverage", 1).stdout) == before


def test_workers_run_under_the_options_of_the_interpreter(place: Path) -> None:
    (place / "optimized.py").write_text(
        "import sys\nfrom swarmtest import Machine, action\n"
        "class Checks(Machine):\n    @action\n    def go(self):\n"
        "        assert False, 'optimized away'\n"
        "        if not sys.flags.dev_mode: raise ValueError\n"
    )
    program = [sys.executable, "-O", "-X", "dev", "-c", "from swarmtest.ui.cli import main; main()"]
    words = [*program, "run", "optimized.py", "-n", "5", "-j", "1"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_beside_the_subject_can_be_named_from_elsewhere(
    swarmtest: Run, tmp_path: Path, place: Path
) -> None:
    elsewhere = tmp_path / "a" / "b" / "c" / "d"
    elsewhere.mkdir(parents=True)
    (elsewhere / "setup.cfg").write_text("")
    options = ("-n", 300, "--coverage", "line", "--cover", "shop")
    done = swarmtest("run", f"{place / 'harness.py'}::Shop", *options, cwd=elsewhere)
    assert "coverage: line 22 of 24" in done.stdout, done.stderr


def test_what_imports_reach_belongs_to_no_test(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 30, "--coverage", "line")
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        outside = store.campaign(1).outside
        assert outside is not None
        names = store.targets()
        at_import = {str(names[id]) for id in unpack_hits(outside)}
        hit = {str(names[i]) for t in store.trials(1) if t.hits for i in unpack_hits(t.hits)}
    assert "line:shop/cart.py:5" in at_import
    assert not at_import & hit


def test_saturation_counts_new_lines(run: Run) -> None:
    done = run("run", "harness.py::Shop", "--coverage", "line", "--saturation", 100, "-j", 1)
    assert "100 tests without anything new" in done.stdout


def test_coverage_goes_out_to_other_tools_and_comes_back(run: Run, place: Path) -> None:
    run("run", "harness.py::Shop", "-n", 40, "--coverage", "line,branch")
    for file in ("all.coverage", "all.lcov", "all.xml"):
        run("coverage", 1, "-o", file, "--by-test")
        run("import-coverage", file)
    with open_store(str(place / ".swarmtest" / "swarmtest.db")) as store:
        original = reached(store, 1)
        for campaign, tests in ((2, 40), (3, 40), (4, 1)):
            assert reached(store, campaign) == original
            assert store.summary(campaign)["trials"] == tests


def reached(store: object, campaign: int) -> set[str]:
    found: set[str] = set()
    names = store.targets()  # type: ignore[attr-defined]
    hits = [t.hits for t in store.trials(campaign)]  # type: ignore[attr-defined]
    for data in [*hits, store.campaign(campaign).outside]:  # type: ignore[attr-defined]
        found |= {str(names[id]) for id in unpack_hits(data)} if data else set()
    return {name for name in found if name.startswith(("line:", "branch:"))}


def test_an_imported_campaign_can_be_shown_and_says_why_it_cannot_be_exported(
    run: Run, swarmtest: Run, place: Path, refused: Callable[..., str]
) -> None:
    (place / "a.lcov").write_text("TN:one\nSF:shop/prices.py\nDA:2,1\nDA:3,0\nend_of_record\n")
    run("import-coverage", "a.lcov")
    assert "coverage: line 1 of 7 (14%)" in run("show").stdout
    refused(swarmtest("export", cwd=place), "coverage that another tool measured")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--coverage", "lines"], ["'lines'", "did you mean 'line'"]),
        (["--coverage", ""], ["needs a kind"]),
        (["--cover", "shop"], ["--cover goes with --coverage"]),
        (["--coverage", "line", "--cover", "no/where"], ["no/where", "path that exists"]),
        (["--coverage", "line", "--cover", "shpo"], ["no module 'shpo'", "did you mean 'shop'?"]),
        (["--coverage", "line", "--cover", "zzz.cart"], ["no module 'zzz'", "give its path?"]),
        (["--coverage", "line", "--cover", ""], ["--cover needs a name"]),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(
    swarmtest: Run, place: Path, refused: Callable[..., str], options: list[str], words: list[str]
) -> None:
    refused(swarmtest("run", "harness.py::Shop", *options, cwd=place), *words)


def test_a_file_that_cannot_be_parsed_is_named(
    swarmtest: Run, place: Path, refused: Callable[..., str]
) -> None:
    (place / "shop" / "prices.py").write_text("def price_of(:\n")
    done = swarmtest("run", "harness.py::Shop", "--coverage", "line", cwd=place)
    refused(done, "shop/prices.py:1", "invalid syntax")


def test_what_cannot_be_watched_is_said(run: Run) -> None:
    options = ("-n", 5, "--coverage", "line")
    done = run("run", "harness.py::Shop", *options, "--cover", "numpy", "--cover", "shop")
    assert "note: numpy (" in done.stdout
    assert "swarmtest itself needs it" in done.stdout
    done = run("run", "harness.py::Shop", *options, "--cover", "colorsys")
    assert "imported no module that is watched" in done.stdout
    assert "coverage: nothing was measured" in done.stdout


@pytest.mark.parametrize("workers", [0, 1])
def test_what_only_a_test_imports_and_cannot_be_watched_is_said_too(
    run: Run, place: Path, workers: int
) -> None:
    (place / "late.py").write_text(
        "from swarmtest import Machine, action\n"
        "class Late(Machine):\n    @action\n    def go(self):\n        import _zoneinfo\n"
    )
    options = ("-n", 5, "-j", workers, "--coverage", "line", "--cover", "_zoneinfo")
    done = run("run", "late.py", *options)
    assert "note: _zoneinfo is a C extension" in done.stdout


def test_a_function_with_too_many_prime_paths_is_said(run: Run, place: Path) -> None:
    decisions = "".join(f"        if n == {i}: continue\n" for i in range(60))
    (place / "dense.py").write_text(
        "from swarmtest import Machine, action\n"
        "class Dense(Machine):\n    steps = 1\n    @action\n    def go(self):\n        dense()\n"
        f"def dense():\n    for n in range(3):\n{decisions}"
        + "".join(
            f"    if n > {i}:\n        n -= 1\n    else:\n        n += 1\n" for i in range(2000)
        )
    )
    done = run("run", "dense.py", "-n", 2, "-j", 1, "--coverage", "prime")
    assert "note: dense.py:7: dense has more than" in done.stdout
    assert "its prime paths are not counted" in done.stdout


def test_a_campaign_without_coverage_says_how_to_get_it(
    run: Run, swarmtest: Run, place: Path, refused: Callable[..., str]
) -> None:
    run("run", "harness.py::Shop", "-n", 5)
    refused(swarmtest("coverage", cwd=place), "measured no coverage", "--coverage line")
    run("run", "harness.py::Shop", "-n", 5, "--coverage", "line")
    done = swarmtest("coverage", "--show", "shop/crat.py", cwd=place)
    refused(done, "did you mean 'shop/cart.py'?")


def test_coverage_as_json_for_programs(run: Run) -> None:
    run("run", "harness.py::Shop", "-n", 50, "--coverage", "line", "--json")
    told = json.loads(run("coverage", "--json").stdout)
    lines = {target["name"]: target for target in told["targets"]}
    assert lines["shop/cart.py:9"]["tests"] == 50
    assert lines["shop/cart.py:5"]["at_import"]


def test_a_loop_of_ones_own_records_what_each_trial_reached(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(place)
    with Coverage("line", cover=["shop"]) as coverage:
        from shop.cart import Cart  # type: ignore[import-not-found]

        with open_store(":memory:") as store:
            trials = swarm(["add", "drop"], tests=20, store=store, coverage=coverage)
            for trial in trials:
                with trial:
                    cart = Cart()
                    if "drop" in trial:
                        cart.drop()
            names = store.targets()
            drops = next(i for i, t in names.items() if t.name == "shop/cart.py:17")
            for record in store.trials(trials.campaign):
                assert record.hits is not None
                configuration = Configuration.from_bytes(trials.space, record.configuration)
                assert ("drop" in configuration) == (drops in unpack_hits(record.hits))
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        del sys.modules[name]
