"""`swarmtest compare`: run strategies beside each other, or look at campaigns that are there."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys

import pytest

MACHINE = """
import os, time
from swarmtest import Machine, action

class Stack(Machine):
    steps = 40
    def start(self):
        self.items = []
        time.sleep(float(os.environ.get("NAP", "0")))
    @action
    def push(self):
        self.items.append(1)
        assert len(self.items) < 20
    @action(when=lambda self: self.items)
    def pop(self): self.items.pop()
    @action
    def look(self): self.event("looked")

class Other(Machine):
    @action
    def rest(self): pass
"""
RUN = ("compare", "stack.py::Stack", "--strategies", "all-on,coin", "-n", 60, "-j", 1)
SWARMTEST = [sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()"]


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest):
    """A directory whose store has five repeats of all-on and coin, as campaigns 1 to 10."""
    place = tmp_path_factory.mktemp("compare")
    (place / "stack.py").write_text(MACHINE)
    done = swarmtest(*RUN, "--repeat", 5, cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
    (place / "compare.txt").write_text(done.stdout)
    return place


@pytest.fixture
def text(place):
    return (place / "compare.txt").read_text()


# Running


def test_strategies_take_turns_with_every_seed(text):
    runs = re.findall(r"^run (\d+) of 10: campaign \d+, ([\w-]+), seed (\d)", text, re.MULTILINE)
    assert [int(number) for number, _, _ in runs] == [*range(1, 11)]
    assert [(name, int(seed)) for _, name, seed in runs] == [
        (name, seed) for seed in range(5) for name in ("all-on", "coin")
    ]


def test_the_report_tells_what_was_found_at_equal_tests_and_at_equal_cpu_time(text):
    assert "AT EQUAL TESTS: the first 60 of each run" in text
    assert "AT EQUAL CPU TIME: the first" in text
    assert re.search(r"^fault +all-on +0 always +0 +0 +0 +-$", text, re.MULTILINE)
    assert re.search(r"^ +coin +1 always +1 +1 +0 +[\d.]+$", text, re.MULTILINE)


def test_the_report_tells_how_sure_it_is(text):
    assert re.search(r"^fault +coin +\+1 always +1.00 large \[0.64, 1.00\] +0.0079", text, re.M)
    assert "coin against all-on: more faults at equal tests" in text


def test_the_report_tells_how_soon_each_fault_is_found(text):
    assert re.search(r"all-on +0 of 5 +over 60 ", text)
    assert re.search(r"coin +5 of 5 +\d+ \[\d+, ∞\]", text)
    assert "AssertionError [Stack.push: assert len(self.items) < 20]" in text


def test_the_same_report_can_be_shown_again_without_running(place, text, swarmtest):
    command = re.search(r"^show this again: swarmtest (.*)$", text, re.MULTILINE)
    assert command
    again = swarmtest(*command[1].split(), cwd=place)
    assert again.returncode == 0
    report = text.partition("\n\n")[2].partition("\n\nshow this again")[0]
    shown = re.sub(r"note: no campaign watched code.*\n\n", "", again.stdout)
    assert shown.strip() == report.strip()


def test_runs_are_ordinary_campaigns(place, swarmtest):
    rows = swarmtest("list", "--json", cwd=place).stdout.splitlines()
    assert len(rows) >= 10
    assert json.loads(rows[1])["strategy"] == "coin"


def test_coverage_is_compared_by_kind(place, swarmtest):
    (place / "lib.py").write_text("def double(x):\n    return 2 * x\n")
    (place / "double.py").write_text(
        "from lib import double\nfrom swarmtest import Machine, action\n"
        "class Doubles(Machine):\n    @action\n    def go(self): double(1)\n"
    )
    options = ("--strategies", "all-on,coin", "--repeat", 1, "-n", 5, "-j", 1, "-q")
    watch = ("--coverage", "line", "--store", "lines.db")
    done = swarmtest("compare", "double.py", *options, *watch, cwd=place)
    assert re.search(r"^line +all-on +1 +1 +0 +1 +5$", done.stdout, re.MULTILINE), done.stderr
    assert "no run found a fault" in done.stdout
    assert "show this again: swarmtest compare 1-2 --store lines.db" in done.stdout


def test_one_repeat_prints_no_p_and_says_what_is_needed(place, swarmtest):
    out = swarmtest("compare", 1, 2, cwd=place).stdout
    assert "note: one run of all-on, coin: no intervals and no p-values" in out
    assert "A12" not in out


def test_strategies_with_parameters_go_in_parentheses(place, swarmtest):
    options = ("--strategies", "coin(p=0.3,n=8),all-on", "--strategies", "sized", "--repeat", 1)
    budget = ("-n", 3, "-j", 1, "-q", "--store", "three.db")
    out = swarmtest("compare", "stack.py::Other", *options, *budget, cwd=place).stdout
    assert "all-on, coin:p=0.3,n=8, sized, 1 run each; baseline all-on" in out


def test_strategies_may_be_nested(place, swarmtest):
    nested = "all-on,mixture(all-on=0.3,coin(p=0.3)=0.7)"
    options = ("--strategies", nested, "--repeat", 1, "-n", 3, "-j", 1, "-q", "--store", "nest.db")
    out = swarmtest("compare", "stack.py::Other", *options, cwd=place).stdout
    assert "all-on, mixture:all-on=0.3,coin(p=0.3)=0.7, 1 run each" in out


def test_runs_without_a_limit_have_a_thousand_tests(place, swarmtest):
    options = ("--strategies", "all-on,coin", "--repeat", 1, "-j", 1, "--store", "limit.db")
    out = swarmtest("compare", "stack.py::Other", *options, cwd=place).stdout
    assert "2 runs, each until 1,000 tests (--tests says how many)" in out
    assert "AT EQUAL TESTS: the first 1,000 of each run" in out
    told = " ".join(swarmtest("compare", "--help", cwd=place).stdout.split())
    assert "[default: 1,000 if no other limit is given]" in told


def test_one_test_is_a_test(place, swarmtest):
    options = ("--strategies", "all-on,coin", "--repeat", 1, "-j", 1, "--store", "one.db")
    out = swarmtest("compare", "stack.py::Other", *options, "-n", 1, cwd=place).stdout
    assert "each until 1 test\n" in out
    assert "1 tests" not in out


# Screens


def on_a_screen(place, *arguments):
    """What a terminal of 80 columns shows."""
    ours, theirs = pty.openpty()
    command = [*SWARMTEST, *map(str, arguments)]
    with subprocess.Popen(command, cwd=place, env=os.environ | {"COLUMNS": "80"}, stdout=theirs):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return shown.decode()


def test_every_line_fits_a_terminal(place):
    lines = on_a_screen(place, "compare", "1-10").splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) > 40


def test_a_terminal_without_blocks_gets_plain_characters(place, start):
    process = start("compare", "1-10", cwd=place, PYTHONIOENCODING="ascii")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert out.isascii()
    assert re.search(r"coin +5 of 5 +\d+ \[\d+, inf\] .*#", out)


def test_json_lines_tell_every_run_and_the_comparison(place, swarmtest):
    done = swarmtest(*RUN, "--repeat", 1, "--json", "--store", "json.db", cwd=place)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["start", "run", "run", "comparison"]
    assert events[-1]["strategies"] == ["all-on", "coin"]
    assert events[-1]["equal_tests"]["limit"] == 60


# Campaigns that are there


def test_campaigns_can_be_named_one_by_one_or_as_a_range(place, swarmtest):
    one_by_one = swarmtest("compare", 1, 2, 3, 4, "--json", cwd=place)
    assert swarmtest("compare", "1-4", "--json", cwd=place).stdout == one_by_one.stdout


def test_the_baseline_can_be_chosen(place, swarmtest):
    out = swarmtest("compare", "1-10", "--baseline", "coin", cwd=place).stdout
    assert "all-on against coin: fewer faults" in out


def test_confidence_can_be_chosen(place, swarmtest):
    out = swarmtest("compare", "1-10", "--confidence", "0.8", cwd=place).stdout
    assert "[ ] 80% interval" in out


def test_it_is_told_when_a_change_of_the_program_would_go_unnoticed(place, swarmtest):
    out = swarmtest("compare", "1-4", cwd=place).stdout
    assert "only the machine is known to have been the same" in out


# Refusals


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["say what to compare"]),
        ((1, 99), ["99"]),
        ((1, 3), ["all campaigns are of strategy 'all-on'"]),
        ((1, 2, 2), ["campaign 2 is named twice"]),
        (("4-2",), ["4-2", "low to high"]),
        ((1, 2, "-n", 9), ["--tests goes with a PATH"]),
        ((1, 2, "--strategies", "all-on,coin"), ["--strategies goes with a PATH"]),
        ((1, 2, "--baseline", "layered"), ["no campaign has the baseline 'layered'"]),
        ((1, 2, "--confidence", "95"), ["confidence", "0.95"]),
        (("stack.py::Stack", 1, "-n", 9), ["one PATH", "not both"]),
        ((1, 2, "--continue"), ["--continue goes with a PATH"]),
        (("stack.py::Stack", "-n", 9, "--strategies", "coin"), ["two strategies"]),
        (("stack.py::Stack", "-n", 9, "--strategies", "coin,con"), ["unknown strategy 'con'"]),
        (("stack.py::Stack", "-n", 9, "--strategies", "coin,coin:p=0.5"), ["'coin' twice"]),
        (
            ("stack.py::Stack", "-n", 9, "--strategies", "all-on,coin:p=0.3,n=8"),
            ["in parentheses", "coin(p=0.3,n=100)"],
        ),
        (("stack.py::Stack", "-n", 9, "--baseline", "sized"), ["--baseline sized: not among"]),
        (("stack.py::Stack", "-n", 9, "-j", 0), ["--workers 0", "not independent"]),
        (("stack.py::Stack", "-n", 9, "--repeat", 0), ["--repeat"]),
        (("stack.py::Stack", "-n", 9, "--raises", "KeyError"), ["--raises goes with --api"]),
        (("stack.py::Stack", "-n", 9, "--cover", "lib"), ["--cover goes with --coverage"]),
        (("nothing.py", "-n", 9), ["nothing.py"]),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    place, swarmtest, refused, arguments, words
):
    refused(swarmtest("compare", *arguments, cwd=place), *words)


def test_a_strategy_that_cannot_run_is_refused_before_anything_runs(place, swarmtest, refused):
    many = "\n".join(f"    @action\n    def a{i}(self): pass" for i in range(17))
    (place / "many.py").write_text(
        f"from swarmtest import Machine, action\nclass Many(Machine):\n{many}\n"
    )
    options = ("-n", 9, "-j", 1, "--strategies", "all-on,complete", "--store", "never.db")
    refused(swarmtest("compare", "many.py", *options, cwd=place), "complete")
    assert not (place / "never.db").exists()


def test_campaigns_of_different_machines_are_refused(place, swarmtest, refused):
    swarmtest("run", "stack.py::Other", "-n", 3, "-j", 1, "--store", "mixed.db", cwd=place)
    swarmtest("run", "stack.py::Stack", "-n", 3, "-j", 1, "--store", "mixed.db", cwd=place)
    done = swarmtest("compare", 1, 2, "--store", "mixed.db", cwd=place)
    refused(done, "one tests stack.py::Other, the other stack.py::Stack")


# Ctrl-C


def test_ctrl_c_keeps_what_is_done_and_says_how_to_show_it(place, start, until, swarmtest):
    store = place / "interrupted.db"
    process = start(*RUN, "--repeat", 5, "--store", store.name, cwd=place, NAP="0.01")

    def begun():
        if not store.exists():
            return 0
        with contextlib.closing(
            sqlite3.connect(f"file:{store}?mode=ro", uri=True, isolation_level=None)
        ) as opened:
            try:
                return opened.execute("select count(*) from campaigns").fetchone()[0]
            except sqlite3.OperationalError:
                return 0

    until(lambda: begun() >= 3, "the third run")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert re.search(r"interrupted: \d of 10 runs are done, and kept", out)
    command = re.search(r"compare what is done: swarmtest (.*)", out)
    assert command
    assert swarmtest(*command[1].split(), cwd=place).returncode == 0
    finished = out.count("\nrun ") - 1  # "run the rest"
    command = re.search(r"run the rest: swarmtest (.* --continue)\n", out)
    assert command
    rest = swarmtest(*command[1].split(), cwd=place)
    assert rest.returncode == 0
    assert rest.stdout.count(": in the store already") == finished >= 2
    assert "show this again: swarmtest compare 1-10 --store interrupted.db" in rest.stdout
    assert "note: some runs were in the store already, and no code was watched" in rest.stdout


def test_runs_are_repeated_if_anything_is_different(place, swarmtest):
    options = ("--strategies", "all-on,coin", "--repeat", 1, "-j", 1, "--store", "again.db")
    watch = ("--coverage", "line", "--cover", "part")
    (place / "part.py").write_text("def half(x):\n    return x / 2\n")
    (place / "half.py").write_text(
        "from part import half\nfrom swarmtest import Machine, action\n"
        "class Halves(Machine):\n    @action\n    def go(self): half(1)\n"
    )

    def kept(*more):
        out = swarmtest("compare", "half.py", *options, *watch, *more, cwd=place).stdout
        return out.count(": in the store already")

    assert [kept("-n", 5, *more) for more in ((), (), ("--continue",))] == [0, 0, 2]
    assert kept("-n", 6, "--continue") == 0
    assert kept("-n", 5, "--continue", "--seed", 1) == 0
    assert kept("-n", 5, "--continue", "--steps", 7) == 0
    (place / "part.py").write_text("def half(x):\n    return x // 2\n")
    assert kept("-n", 5, "--continue") == 0
