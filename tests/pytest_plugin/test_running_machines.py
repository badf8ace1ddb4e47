"""What a user sees of a campaign that pytest ran."""

from __future__ import annotations

import os
import re
import shlex

import pytest
from pytest_suites import FAULTY, FINE
from shown_calls import count_calls

from swarmtest.store.records import FaultRecord

pytest_plugins = "pytester"


def replayed(result: pytest.RunResult) -> list[str]:
    """What the lines say that one should type to replay."""
    lines = [line.strip() for line in result.outlines]
    return [line.removeprefix("replay: swarmtest ") for line in lines if line.startswith("replay:")]


def test_a_machine_without_faults_passes_and_says_how_much_was_tested(pytester, write):
    write(test_it=FINE)
    result = pytester.runpytest()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["swarmtest: seed 0", "swarmtest: 1,000 tests, 0 distinct faults -> .swarmtest/*.db"]
    )


def test_a_fault_is_shown_with_a_small_test_and_what_triggers_it(pytester, write):
    write(test_it=FAULTY)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "1 fault in 1,000 tests: OverflowError: stack is full [[]Stack.push]",
            "seed 0, strategy layered",
            "fault * exception: OverflowError: stack is full *",
            "  triggers: push; suppressors: pop",
            "    from test_it import StackMachine",
            "    machine = StackMachine()",
            "    machine.start()",
            "    Traceback (most recent call last):",
            '*raise OverflowError("stack is full")',
            "    OverflowError: stack is full",
            "  replay: swarmtest replay 453b1f05",
            "rerun: pytest test_it.py::StackMachine --swarm-seed 0",
            "FAILED test_it.py::StackMachine - Failed: 1 fault in 1,000 tests: *",
        ]
    )
    text = result.stdout.str()
    assert count_calls(text, "machine.push(") == 9
    assert "machine.pop" not in text
    assert f"swarmtest{os.sep}subjects" not in text


@pytest.mark.parametrize("assertion", ["assert value != 7", "assert value != 7, 'not seven'"])
def test_the_line_to_replay_shows_the_same_fault(pytester, write, swarmtest, assertion):
    # pytest explains asserts of test modules, and `swarmtest replay` does not: one fault.
    write(test_it=FAULTY.replace("self.stack.push(value)", assertion))
    [name] = replayed(pytester.runpytest())
    done = swarmtest(*shlex.split(name), cwd=pytester.path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.rstrip().endswith("the same as recorded"), done.stdout


def test_swarmtest_faults_shows_what_pytest_found(pytester, write, swarmtest):
    write(test_it=FAULTY)
    pytester.runpytest()
    done = swarmtest("faults", cwd=pytester.path)
    assert "OverflowError: stack is full" in done.stdout


def test_from_another_directory_the_lines_to_type_work_too(pytester, write, monkeypatch):
    pytester.makeini("[pytest]\n")
    inner = pytester.mkdir("inner")
    write(**{"inner/test_it": FAULTY})
    monkeypatch.chdir(inner)
    result = pytester.runpytest()
    assert (pytester.path / ".swarmtest" / "swarmtest.db").exists()
    result.stdout.fnmatch_lines(
        ["  replay: cd .. && swarmtest replay 171d2668", "rerun: pytest test_it.py::StackMachine *"]
    )


def test_the_line_to_replay_has_the_path_that_only_pytest_knows(pytester, write):
    pytester.makeini("[pytest]\npythonpath = src lib\n")
    write(test_it=FAULTY)
    result = pytester.runpytest("--swarm-tests", "100")
    result.stdout.fnmatch_lines(["  replay: PYTHONPATH=src:lib swarmtest replay 453b1f05"])


def test_what_the_program_prints_is_not_shown(pytester, write):
    loud = FAULTY.replace(
        "self.stack = Stack()",
        "self.stack = Stack(); print('LOUD'); import os; os.write(2, b'RAW')",
    )
    write(test_it=loud)
    result = pytester.runpytest("--capture=fd")
    result.assert_outcomes(failed=1)
    assert not re.search("^(LOUD|RAW)", result.stdout.str() + result.stderr.str(), re.MULTILINE)


def test_a_program_that_crashes_does_not_end_pytest(pytester, write):
    write(test_a=FAULTY.replace('raise OverflowError("stack is full")', "__import__('os').abort()"))
    write(test_b=FINE)
    result = pytester.runpytest("--swarm-tests", "40")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["fault * signal: SIGABRT [[]push < push]", "    Fatal Python error: Aborted"]
    )


MANY = """
    from swarmtest import Machine, action

    class Many(Machine):
        steps = 1
    """ + "".join(
    f"""
        @action
        def fail{n}(self): raise ValueError("{word}")
    """
    for n, word in enumerate(["one", "two", "three", "four", "five"])
)


def test_all_faults_of_a_campaign_are_listed_and_the_test_fails_once(pytester, write, store):
    write(test_it=MANY)
    result = pytester.runpytest("--swarm-tests", "100")
    result.assert_outcomes(failed=1)
    found: list[FaultRecord] = store().faults(1)
    assert len(found) == 5
    text = result.stdout.str()
    assert all(f"fault {fault.id}" in text for fault in found)
    assert len(replayed(result)) == 5
    assert text.count("from test_it import Many") == 3
    result.stdout.fnmatch_lines(["5 faults in 100 tests: *; ..."])


INVALID = """
    from swarmtest import Machine, Result, Verdict, action
    from swarmtest.subjects import MachineSubject

    class _Any(Machine):
        @action
        def go(self): pass

    class Broken(MachineSubject):
        def execute(self, configuration, seed):
            return Result(Verdict.INVALID, missing="the generator is not there")

    broken = Broken(_Any)
    """


def test_a_machine_of_which_no_test_was_valid_does_not_pass(pytester, write):
    write(test_it=INVALID)
    result = pytester.runpytest("--swarm-tests", "20")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["none of * tests was valid: the generator is not there"])


def test_a_machine_of_which_no_action_ran_does_not_pass(pytester, write):
    write(
        test_it="""
        from swarmtest import Machine, action

        class IdleMachine(Machine):
            @action(when=lambda self: False)
            def go(self): pass
        """
    )
    result = pytester.runpytest("--swarm-tests", "5")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no action ran in 5 tests, so nothing was tested: *"])


def test_a_machine_that_is_written_wrongly_fails_with_one_line(pytester, write):
    write(test_it=FAULTY.replace("value=integers(0, 9)", "valeu=integers(0, 9)"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["action StackMachine.push has no parameter 'valeu'; did you mean 'value'?"]
    )
    assert "Traceback" not in result.stdout.str()


DEAD = """
        @action(when=lambda self: False)
        def never(self):
            pass
    """


def test_an_action_that_never_ran_is_a_warning(pytester, write):
    write(test_it=FINE + DEAD)
    result = pytester.runpytest("-W", "always")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*Lamp: action 'never' was allowed in * tests and never ran: *"])


def test_beside_a_fault_it_is_a_note(pytester, write):
    write(test_it=FAULTY + DEAD)
    result = pytester.runpytest("-W", "error")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["1 fault in 1,000 tests: *", "note: action 'never' was allowed in *", "rerun: *"]
    )


HANGING = """
    import time
    from swarmtest import Machine, action

    class Tap(Machine):
        steps = 1
        opened = 0

        @action
        def open(self):
            type(self).opened += 1
            time.sleep(60 if self.opened > 18 else 0)  # from 20 tests on, the limit adapts
    """


def test_a_test_that_hangs_when_time_is_up_is_a_failure(pytester, write):
    write(test_it=HANGING)
    result = pytester.runpytest("--swarm-time", "8s")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["fault *  timeout [[]open]"])


def test_the_program_is_tested_as_conftest_set_it_up(pytester, write):
    write(program="LIMIT = None\n", conftest="import program\nprogram.LIMIT = 3\n")
    write(test_it=FINE.replace("pass", "import program; assert program.LIMIT == 3"))
    pytester.runpytest().assert_outcomes(passed=1)


def test_of_each_machine_the_last_passing_campaign_is_kept_and_every_failing_one(
    pytester, write, store
):
    write(test_good=FINE, test_bad=FAULTY)
    for _ in range(2):
        pytester.runpytest("--swarm-tests", "100")
    subjects = [record.subject for record in store().campaigns()]
    bad = "test_bad.py::StackMachine"
    assert sorted(subjects) == [bad, bad, "test_good.py::Lamp"]


MARKED = """
    import pytest
    from swarmtest import Machine, action

    @pytest.mark.skip(reason="later")
    class Skipped(Machine):
        @action
        def go(self): pass

    @pytest.mark.xfail(strict=True)
    class Fails(Machine):
        @action
        def go(self): assert 0

    @pytest.mark.slow
    class Slow(Machine):
        @action
        def go(self): pass

    class AlsoSlow(Slow):
        pass
    """


def test_markers_on_machines_do_what_they_do_on_functions(pytester, write):
    write(test_it=MARKED)
    pytester.makeini("[pytest]\nmarkers = slow\n")
    pytester.runpytest("-m", "not slow").assert_outcomes(skipped=1, xfailed=1, deselected=2)


def test_a_marker_that_would_do_nothing_is_refused(pytester, write):
    text = FINE.replace("class", "@pytest.mark.parametrize('x', [1])\n    class")
    write(test_it="import pytest\n" + text.replace("\n    ", "\n"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["pytest.mark.parametrize has no effect on a machine"])


def test_what_a_terminal_would_obey_is_shown_as_escapes(pytester, write):
    write(test_it=FAULTY.replace("stack is full", "full\\x1b]0;owned\\x07\\u202e"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert not re.search("[\x07\x1b\u202e]", text)
    assert "OverflowError: full\\x1b]0;owned\\x07\\u202e" in text


@pytest.mark.parametrize(("fail_on", "outcomes"), [
    ("any", [{"failed": 1}, {"failed": 1}]),
    ("new", [{"failed": 1}, {"passed": 1}]),
    ("never", [{"passed": 1}, {"passed": 1}]),
])  # fmt: skip
def test_fail_on_says_which_faults_fail(pytester, write, fail_on, outcomes):
    write(test_it=FAULTY)
    words = ("--swarm-tests", "100", "--swarm-no-why", "--swarm-fail-on", fail_on)
    for expected in outcomes:
        result = pytester.runpytest(*words)
        result.assert_outcomes(**expected)
    word = "swarmtest: test_it.py::StackMachine: known fault 453b1f05, still there: Overflow*"
    result.stdout.fnmatch_lines(["*state: open, still there*" if fail_on == "any" else word])


def test_the_ini_file_says_which_faults_fail(pytester, write):
    pytester.makeini("[pytest]\nswarm_fail_on = sometimes\n")
    write(test_it=FAULTY)
    result = pytester.runpytest()
    assert "swarm_fail_on is new, any or never, not 'sometimes'" in result.stderr.str()
