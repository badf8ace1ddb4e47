"""What becomes a test, and what does not."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from pytest_suites import FINE

import swarmtest

pytest_plugins = "pytester"


def names_of(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


@pytest.fixture
def collected(pytester, write):
    def names(*arguments, **files):
        write(**files)
        return names_of(pytester.runpytest("--collect-only", "-q", *arguments))

    return names


def test_a_machine_is_a_test(collected):
    assert collected(test_it=FINE) == ["test_it.py::Lamp"]


def test_a_machine_without_actions_is_the_base_of_others(collected):
    text = """
        import abc
        from swarmtest import Machine, action

        class NoActions(Machine):
            def start(self): pass

        class Abstract(Machine, abc.ABC):
            @abc.abstractmethod
            def start(self): ...
            @action
            def go(self): pass

        class _Private(Abstract):
            def start(self): pass

        class Unwanted(_Private):
            __test__ = False

        class Overridden(_Private):
            def go(self): "no action any more"

        class Wanted(_Private):
            pass
        """
    assert collected(test_it=text) == ["test_it.py::Wanted"]


def test_a_machine_is_collected_where_it_is_defined(collected):
    both = {"test_one": FINE, "test_two": "from test_one import Lamp\n"}
    assert collected(**both) == ["test_one.py::Lamp"]


def test_pytest_does_not_mind_a_machine_that_is_named_like_its_own_classes(pytester, write):
    write(machines=FINE.replace("Lamp", "TestLamp"))
    write(test_it="from machines import TestLamp\ndef test_it(): pass\n")
    result = pytester.runpytest("-q", "-W", "error")
    result.assert_outcomes(passed=1)
    write(test_it=FINE.replace("Lamp", "TestLamp") + "\n    def test_it(): pass\n")
    result = pytester.runpytest("-q", "-W", "error", "--swarm-tests", "0")
    result.assert_outcomes(passed=1)


SUBJECT = """
    from unittest.mock import MagicMock, call
    from swarmtest.subjects import MachineSubject
    from test_machine import Lamp

    lamp = MachineSubject(Lamp)
    mock = MagicMock()
    """


def test_a_subject_is_a_test_where_it_is_made(collected):
    found = collected(
        test_machine=FINE, test_subject=SUBJECT, test_other="from test_subject import lamp\n"
    )
    assert found == ["test_machine.py::Lamp", "test_subject.py::lamp"]


def test_nothing_is_collected_where_the_number_of_tests_is_0(collected, pytester):
    pytester.makeini("[pytest]\nswarm_tests = 0\n")
    (pytester.path / "it.swarm.toml").write_text("[generate]\n")
    assert collected(test_it=FINE + "\n    def test_it(): pass\n") == ["test_it.py::test_it"]


@pytest.fixture
def toml_files(pytester):
    for name in ("auto.swarm.toml", "plain.toml"):
        (pytester.path / name).write_text("[generate]\ncommand = 'true'\n")
    (pytester.path / "settings.toml").write_text("[other]\n")
    (pytester.path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")


def test_a_file_that_is_named_swarm_toml_is_a_test(collected, toml_files):
    assert collected() == ["auto.swarm.toml::auto"]


def test_any_other_is_one_if_it_is_named_and_has_a_generator(collected, toml_files):
    assert collected("plain.toml") == ["plain.toml::plain"]
    assert collected("settings.toml") == []


def test_the_plugin_imports_no_more_than_it_needs_to_collect():
    program = f"""
import json, sys, types
package = sys.modules["swarmtest"] = types.ModuleType("swarmtest")
package.__path__ = {list(swarmtest.__path__)}
import swarmtest.pytest_plugin
print(json.dumps(sorted(sys.modules)))
"""
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = json.loads(child.stdout)
    own = [name for name in loaded if name.startswith("swarmtest.")]
    assert not {"numpy", "sqlite3"} & set(loaded)
    assert all(name.startswith(("swarmtest.pytest_plugin", "swarmtest.core")) for name in own)


SUBJECTS = """
    from swarmtest import Result, Space, Subject, Verdict

    class Without(Subject):
        def generate(self, configuration, seed): return [seed]
        def run(self, test): return Result(Verdict.PASSED)

    class Dice(Without):
        space = Space(["odd"])

    dice = Dice()
    without = Without()
    """


def test_objects_of_a_subjects_class_are_tests(collected):
    assert collected(test_it=SUBJECTS) == ["test_it.py::dice", "test_it.py::without"]


def test_an_incomplete_subject_fails_and_says_what_it_lacks(pytester, write):
    write(test_it=SUBJECTS)
    result = pytester.runpytest("--swarm-tests=5")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*without: an incomplete subject, it has no space: write space*"])
