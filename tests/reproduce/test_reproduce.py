"""A fault as a script without swarmtest, checked in a clean process, and as a report."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.processes.commands import ProcessEnd
from swarmtest.reproduce.clean_run import CleanRun, run_cleanly, shortened
from swarmtest.reproduce.issue import issue_text
from swarmtest.reproduce.standalone_script import standalone_script
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.api import api_machine

FILE = """
from collections import Counter
from dataclasses import dataclass
from swarmtest import Compared, Machine, Pool, action, integers, invariant, with_checks
import swarmtest

LIMIT = 3
AMOUNTS = integers(0, 9)

def large(n): return n > LIMIT

class Till:
    def __init__(self): self.counts = Counter()
    def pay(self, n):
        if large(n): self.counts[n] += 1
        if self.counts[n] == 2: raise OverflowError(n)

class TillMachine(Machine):
    steps = 40
    value_features = True
    def start(self):
        self.till = Till()
    @action(n=AMOUNTS)
    def pay(self, n: int) -> None:
        self.event("paid")
        self.till.pay(n)
    @action
    def wait(self): pass

class Sinking(Machine):
    def start(self): self.n = 2
    @action
    def down(self): self.n -= 1
    @invariant
    def afloat(self): return self.n > 0

class Pooled(Machine):
    things = Pool()
    @action(into=things)
    def make(self): return 1
    @action(thing=things)
    def look(self, thing): assert not self.things

class Odd(dict):
    def setdefault(self, k, v=None):
        dict.__setitem__(self, k, v)
        return v

class OddTest(Compared):
    tested = Odd
    like = "dict"
    without = "ior update"

class Keeps(set):
    def __isub__(self, other):
        for value in other: self.remove(value)
        return self

class KeepsTest(Compared):
    tested = Keeps
    like = "set"
"""
GREEDY = """
class Greedy(list):
    def extend(self, values):
        for value in values:
            self.append(value)
            if len(self) > 50: raise OverflowError("too many")
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: Any) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("shop")
    (place / "reported_shop.py").write_text(FILE)
    (place / "greedy_list.py").write_text(GREEDY)
    sys.path.insert(0, str(place))
    yield importlib.import_module("reported_shop")
    sys.path.remove(str(place))
    for name in ("reported_shop", "greedy_list"):
        sys.modules.pop(name, None)


def reduced_failure(machine: Any) -> tuple[MachineSubject, Any, Fault]:
    subject = MachineSubject(machine, harness=not hasattr(machine, "_swarmtest_api"))
    results = (subject.execute(subject.space.default(), seed) for seed in range(200))
    first = next(result for result in results if result.fault)
    fault = first.fault
    assert fault is not None
    test = subject.reduced(
        first.test,
        lambda data: (again := subject.run(data).fault) is not None and again.id == fault.id,
    )
    return subject, test, fault


def script_and_run(machine: Any) -> tuple[str, Any, Fault]:
    subject, test, fault = reduced_failure(machine)
    script = standalone_script(subject, test)
    return script, run_cleanly(script, sys.path), fault


def test_a_machine_becomes_a_plain_class(shop: Any) -> None:
    script, run, fault = script_and_run(shop.TillMachine)
    assert run.shows(fault)
    assert "swarmtest" not in script
    assert "integers" not in script
    assert "AMOUNTS" not in script
    assert "LIMIT = 3" in script
    assert re.search(r"machine.pay\((\d)\)\nmachine.pay\(\1\)\n$", script)
    text = issue_text(fault, script, run)
    assert re.match(r"# OverflowError: \S+ in Till.pay\n", text)
    assert "No OverflowError." in text
    assert 'File "reproduce.py"' in text
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in text


def test_an_invariant_is_asserted_at_the_end(shop: Any) -> None:
    script, run, fault = script_and_run(shop.Sinking)
    assert run.shows(fault)
    assert script.endswith("assert machine.afloat() is not False\n")


def test_a_comparison_calls_both_sides(shop: Any) -> None:
    script, run, fault = script_and_run(shop.OddTest)
    assert run.shows(fault)
    assert "model = dict()" in script
    assert "actual:   returns 1" in run.text
    assert "expected: returns 0" in run.text
    assert "The same as for `dict`" in issue_text(fault, script, run)


def test_an_operator_that_assigns_is_called_on_both_sides(shop: Any) -> None:
    script, run, fault = script_and_run(shop.KeepsTest)
    assert run.shows(fault)
    assert "tested -= set(" in script
    assert "raises KeyError" in run.text


def test_a_check_is_shortened_to_the_operation_that_fails(shop: Any) -> None:
    greedy = importlib.import_module("greedy_list").Greedy
    subject = MachineSubject(api_machine(greedy), harness=False)
    subject.keep_tests = True
    steps = [["append", [1], 0, ""], ["check_itself", [], 0, ""]]
    test = {**subject.test_of(subject.space.configuration(["append"]), 1), "steps": steps}
    fault = subject.run(test).fault
    assert fault is not None
    script = standalone_script(subject, test)
    run = run_cleanly(script, sys.path)
    assert run.shows(fault)
    head, _, rest = script.partition("import copy\n")
    few = f"{head}import copy\n" + "\n".join(rest.splitlines()[:4]) + "\n"
    short = shortened(few, run_cleanly(few, sys.path), sys.path, fault)
    assert short.count("copy.deepcopy") == 1
    assert "a.extend(a)" in short


def test_what_needs_swarmtest_does_not_show_the_fault(shop: Any) -> None:
    _, run, fault = script_and_run(shop.Pooled)
    assert not run.shows(fault)  # the pool is not in the script
    assert "AttributeError" in run.ending


def test_swarmtest_cannot_be_imported_in_a_clean_process() -> None:
    run = run_cleanly("import swarmtest\n", sys.path)
    assert "without swarmtest" in run.text
    assert not run.shows(Fault("exception", "ImportError: x"))


def test_a_signal_is_shown_by_a_signal_only() -> None:
    run = run_cleanly("import os\nos.abort()\n", [])
    assert run.shows(Fault("signal", "SIGABRT"))
    assert not run.shows(Fault("exception", "AssertionError"))
    assert not run_cleanly("assert False\n", []).shows(Fault("signal", "SIGABRT"))


def test_other_subjects_are_refused() -> None:
    with pytest.raises(UserError, match="machines and classes"):
        standalone_script(type("Other", (), {"name": "other"})(), {})


def test_what_a_program_prints_is_text_in_the_report() -> None:
    fault = Fault("exception", "ValueError: \x1b]0;owned\x07 [Till.pay: raise]")
    printed = "```\n\x1b[2J\u202eowned\nValueError: \x1b]0;owned\x07\n"
    end = ProcessEnd(1 << 8, timed_out=False, stderr=printed.encode())
    text = issue_text(fault, "raise ValueError\n", CleanRun(end, printed))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert text.count("````") == 2
