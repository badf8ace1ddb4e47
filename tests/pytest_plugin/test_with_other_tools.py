"""Together with pytest-xdist, debuggers, JUnit's XML, Hypothesis, coverage, and Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest
from pytest_suites import FAULTY, FINE, clean_environment, words_of_pytest
from shown_calls import count_calls

from swarmtest.core.errors import UserError
from swarmtest.store.interface import Store

pytest_plugins = "pytester"


def several(text: str, count: int) -> str:
    return "\n".join(text.replace("Lamp", f"Lamp{n}") for n in range(count))


def test_workers_of_xdist_keep_their_campaigns_in_one_store_at_once(write, store, in_a_process):
    write(test_good=several(FINE, 8), test_bad=FAULTY)
    done = in_a_process("-q", "-n", "2", "--swarm-seed", "random", "--swarm-tests", "300")
    assert "1 failed, 8 passed" in done.stdout, done.stdout + done.stderr
    kept = store()
    assert len(kept.campaigns()) == 9
    assert len({record.seed for record in kept.campaigns()}) == 1
    assert all(kept.summary(record.id)["trials"] == 300 for record in kept.campaigns())
    assert all(record.options["subject"] for record in kept.campaigns())
    assert "rerun: pytest test_bad.py::StackMachine" in done.stdout


def test_the_last_failed_are_run_again_and_the_first_failure_stops(pytester, write):
    write(test_a=FINE, test_b=FAULTY, test_c=FINE)
    pytester.runpytest("-x", "--swarm-tests", "200").assert_outcomes(passed=1, failed=1)
    again = pytester.runpytest("--lf", "--swarm-tests", "200", "-v")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["test_b.py::StackMachine FAILED *"])
    pytester.runpytest("-k", "Lamp", "--swarm-tests", "5").assert_outcomes(passed=2, deselected=1)


def test_junit_s_file_has_the_report_and_the_figures(pytester, write):
    write(test_it=FAULTY)
    pytester.runpytest("--junitxml", "out.xml", "--swarm-tests", "200", "--swarm-seed", "4")
    [case] = ElementTree.parse(pytester.path / "out.xml").iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("test_it", "StackMachine")
    told = {p.get("name"): p.get("value") for p in case.iter("property")}
    assert told["swarm_tests"] == "200"
    assert (told["swarm_faults"], told["swarm_seed"]) == ("1", "4")
    [failure] = case.iter("failure")
    assert "OverflowError: stack is full" in str(failure.get("message"))
    assert "swarmtest replay 453b1f05" in str(failure.text)


RULES = """
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, rule

    class Numbers(RuleBasedStateMachine):
        count = 0

        @rule(x=st.integers(0, 9))
        def add(self, x):
            self.count += 1
            if self.count == 4:
                raise ValueError("too many")

    TestNumbers = Numbers.TestCase
    """


def test_state_machines_stay_tests_of_hypothesis(pytester, write):
    write(test_it=RULES)
    result = pytester.runpytest("--collect-only", "-q")
    result.stdout.fnmatch_lines(["test_it.py::TestNumbers::runTest"])


def test_state_machines_are_run_by_swarmtest_where_that_is_asked_for(in_a_process, write):
    write(test_it=RULES)
    done = in_a_process("-q", "--swarm-hypothesis", "--swarm-tests", "50")
    assert "1 fault in 50 tests: ValueError: too many [Numbers.add]" in done.stdout
    assert count_calls(done.stdout, "state.add(x=") == 4, done.stdout
    assert "rerun: pytest test_it.py::TestNumbers --swarm-hypothesis" in done.stdout


DEBUGGER = """
    import pdb

    class Recorder(pdb.Pdb):
        def interaction(self, frame, traceback_or_exception):
            at = getattr(traceback_or_exception, "__traceback__", traceback_or_exception)
            while at.tb_next is not None:
                at = at.tb_next
            print("\\nSTOPPED IN", at.tb_frame.f_code.co_qualname)
    """


def test_a_debugger_stops_in_the_program_at_the_end_of_the_small_test(pytester, write):
    write(test_it=FAULTY, recorder=DEBUGGER)
    pytester.syspathinsert()
    result = pytester.runpytest("--pdb", "--pdbcls=recorder:Recorder", "--swarm-tests", "200")
    result.stdout.fnmatch_lines(["1 fault in 200 tests: *", "*STOPPED IN Stack.push"])


def test_a_debugger_does_not_run_what_would_end_it(in_a_process, write):
    write(
        test_it=FAULTY.replace('raise OverflowError("stack is full")', "__import__('os').abort()")
    )
    done = in_a_process("--pdb", "--swarm-tests", "40")
    assert "signal: SIGABRT" in done.stdout
    assert "1 failed" in done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["", "xdist"])
def test_coverage_that_nobody_saw_is_not_told_as_nothing(in_a_process, pytester, write, workers):
    write(program="def on():\n    return 1\n", test_other="def test_it(): import program\n")
    write(test_it=FINE.replace("pass", "import program; program.on()"))
    options = ("--swarm-coverage", "line", "--swarm-cover", "program", "--swarm-tests", "20")
    done = in_a_process("-q", *options, *workers)
    assert "swarmtest: coverage of test_it.py::Lamp is missing" in done.stdout, done.stdout
    told = json.loads((pytester.path / "swarm-coverage.json").read_text())
    assert "test_it.py::Lamp" not in told["tests"]


def test_in_this_process_coverage_is_seen(in_a_process, pytester, write):
    write(program="def on():\n    return 1\n")
    write(test_it=FINE.replace("pass", "import program; program.on()"))
    options = ("--swarm-coverage", "line", "--swarm-cover", "program", "--swarm-tests", "20")
    in_a_process("-q", *options, "--swarm-workers", "0")
    told = json.loads((pytester.path / "swarm-coverage.json").read_text())
    assert len(told["tests"]["test_it.py::Lamp"]) == 1


def test_ctrl_c_ends_pytest_and_what_was_tested_is_kept(pytester, write, store, until):
    write(test_it=FINE)
    process = subprocess.Popen(
        words_of_pytest("--swarm-time", "60s"),
        cwd=pytester.path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        until(lambda: trials(store) > 0, "the first tests")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    assert store().campaigns()[0].status == "interrupted"
    assert store().campaigns()[0].options["subject"]["text"] == "test_it.py::Lamp"


def trials(store: Callable[[], Store]) -> int:
    """How many there are, also before there is a store."""
    try:
        with store() as opened:
            return sum(opened.summary(record.id)["trials"] for record in opened.campaigns())
    except UserError:
        return 0
