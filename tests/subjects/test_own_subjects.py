"""A subject of one's own: three things to write, and a line about what is missing."""

from __future__ import annotations

import json
import random
import sys
from textwrap import dedent

import pytest
from installed_packages import install
from picky import Picky

from swarmtest import Campaign, Fault, Result, Space, Subject, UserError, Verdict, open_store
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import NoTest, is_subject

TILL = '''
import os
import random

from swarmtest import Result, Space, Subject, Verdict


class Till(Subject):
    """A till that holds five coins."""

    space = Space(["pay", "refund", "count"])

    def generate(self, configuration, seed):
        return random.Random(seed).choices(sorted(configuration.included), k=20)

    def run(self, test):
        held = 0
        for step in test:
            held = max(0, held + {"pay": 1, "refund": -1, "count": 0}[step])
            assert held <= 5, "the till is full"
        return Result(Verdict.PASSED)
'''


@pytest.fixture(autouse=True)
def _forget_imports(monkeypatch):
    """Modules of one test are unknown to the next."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        if not name.startswith("swarmtest"):
            del sys.modules[name]


class Till(Subject):
    space = Space(["pay", "refund", "count"])

    def generate(self, configuration, seed):
        return random.Random(seed).choices(sorted(configuration.included), k=20)

    def run(self, test):
        held = 0
        for step in test:
            held = max(0, held + {"pay": 1, "refund": -1, "count": 0}[step])
            assert held <= 5, "the till is full"
        return Result(Verdict.PASSED)


def configured(*features):
    return Till().space.configuration(features)


def test_a_fault_is_found_reduced_and_replayed_from_the_command_line(swarmtest, tmp_path):
    (tmp_path / "tills.py").write_text(TILL)
    done = swarmtest("run", "tills.py", "--tests", "60", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "AssertionError: the till is full [Till.run: assert held <= 5]" in done.stdout
    assert "from 20 steps" in done.stdout
    assert "triggers: pay" in done.stdout
    assert "\n" + "    pay\n" * 6 + "\n" in done.stdout
    with open_store(tmp_path / ".swarmtest" / "swarmtest.db") as store:
        (fault,) = store.faults(1)
        (small,) = reductions_of(store, 1).values()
        assert small.test
        assert (json.loads(small.test), small.complete) == (["pay"] * 6, True)
    again = swarmtest("replay", fault.id, cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    assert "the same as recorded" in again.stdout
    trial = f"1#{small.trial}"
    assert swarmtest("replay", trial, "--save", "test.json", cwd=tmp_path).returncode == 1
    saved = swarmtest("replay", "test.json", cwd=tmp_path)
    assert saved.returncode == 1, saved.stderr
    assert f"fails: fault {fault.id}" in saved.stdout
    reduced = swarmtest("reduce", "test.json", "-o", "small.json", cwd=tmp_path)
    assert reduced.returncode == 0, reduced.stderr
    assert reduced.stdout.startswith("pay\n" * 6 + "\n")
    assert json.loads((tmp_path / "small.json").read_text())["test"] == ["pay"] * 6


def test_the_same_tests_run_in_this_process_and_in_workers(tmp_path, monkeypatch):
    (tmp_path / "tills_elsewhere.py").write_text(TILL)
    monkeypatch.chdir(tmp_path)
    with open_store(":memory:") as store:
        for workers in (0, 2):
            Campaign("tills_elsewhere.py", "coin", 40, workers=workers, store=store).run()
        trials = [
            [(t.seed, t.verdict, t.fault, t.steps) for t in store.trials(campaign)]
            for campaign in (1, 2)
        ]
    assert trials[0] == trials[1]
    assert {steps for *_, steps in trials[0]} == {20}


def test_a_test_that_ends_its_process_is_kept_as_it_was_generated(tmp_path, monkeypatch):
    text = TILL.replace('assert held <= 5, "the till is full"', "held <= 5 or os._exit(3)")
    (tmp_path / "deadly_tills.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with open_store(":memory:") as store:
        outcome = Campaign("deadly_tills.py", "coin", 30, workers=1, store=store).run()
        (fault,) = outcome.faults
        assert fault.kind == "exit"
        failing = next(t for t in store.trials(1) if t.verdict == Verdict.FAILED)
        assert failing.steps == 20


def test_defaults_of_results():
    subject = Till()
    assert (subject.name, subject.part, subject.weighted) == (f"{__name__}:Till", "step", False)
    passed = subject.execute(configured("count"), seed=1)
    assert passed == Result(Verdict.PASSED, steps=20)
    subject.keep_tests = True
    assert subject.execute(configured("count"), seed=1).test == ["count"] * 20
    failed = Till().execute(configured("pay"), seed=1)
    assert failed.fault
    assert (failed.test, failed.fault.signature) == (
        ["pay"] * 20,
        "AssertionError: the till is full [Till.run: assert held <= 5]",
    )
    assert Till().replay(failed.test).fault == failed.fault
    assert Till().test_of(configured("pay"), 1) == failed.test
    assert subject.code(["pay", {"amount": 3}]) == 'pay\n{"amount": 3}\n'


@pytest.mark.parametrize(
    ("test", "small"),
    [
        (["a", "b", "needle", "c"], ["needle"]),
        ("a\nneedle\nb\n", "needle\n"),
        ({"start": 7, "steps": ["a", "needle"]}, {"start": 7, "steps": ["needle"]}),
    ],
)
def test_lists_texts_and_steps_are_reduced(test, small):
    subject = Till()
    assert subject.reduced(test, lambda one: "needle" in str(one)) == small
    assert subject.size(small) == 1


def test_a_test_of_another_form_needs_its_parts_to_be_reduced():
    with pytest.raises(UserError, match=r"Till does not say what its tests consist of: write par"):
        Till().reduced(3, lambda one: True)


def test_a_configuration_without_a_test_is_invalid():
    class Empty(Till):
        def generate(self, configuration, seed):
            raise NoTest("nothing to do")

    result = Empty().execute(configured("pay"), seed=1)
    assert (result.verdict, result.missing) == (Verdict.INVALID, "nothing to do")


@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        ("generate", lambda self, configuration, seed: 1 / 0, "generate raised ZeroDivisionError"),
        ("generate", lambda self, configuration, seed: {"pay"}, "not JSON data"),
        ("run", lambda self, test: 3, "run returned 3, not a Result"),
        ("run", lambda self, test: Result(Verdict.FAILED), "failed Result without a Fault"),
    ],
)
def test_what_is_wrong_with_a_subject_is_one_line(method, body, message):
    wrong = type("Wrong", (Till,), {"keep_tests": True, "run": passing, method: body})
    with pytest.raises(UserError, match=message) as caught:
        wrong().execute(configured("pay"), seed=1)
    assert "\n" not in str(caught.value)


def passing(self, test):
    return Result(Verdict.PASSED, steps=1)


@pytest.mark.parametrize("method", ["generate", "run"])
def test_a_class_without_a_method_says_which(method, tmp_path, swarmtest):
    text = TILL.replace(f"def {method}(", f"def {method}_it(")
    (tmp_path / "tills.py").write_text(text)
    done = swarmtest("run", "tills.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"tills.py): an incomplete subject, it has no method {method}: write def" in done.stderr


def test_a_class_without_a_space_says_so(tmp_path, swarmtest):
    (tmp_path / "tills.py").write_text(TILL.replace("    space =", "    features ="))
    done = swarmtest("run", "tills.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "swarmtest: tills.py::Till: an incomplete subject, it has no space: "
        "write space = Space([...]) in class Till\n"
    )


def test_overriding_execute_test_of_and_replay_is_enough():
    class Whole(Subject):
        space = Space(["a"])

        def execute(self, configuration, seed):
            return Result(Verdict.PASSED)

        def test_of(self, configuration, seed):
            return []

        def replay(self, test):
            return Result(Verdict.PASSED)

    assert is_subject(Whole())


def test_an_object_that_is_preferred_to_its_class(tmp_path, monkeypatch):
    text = TILL + "\nsmall = Till()\nsmall.part = 'coin'\n"
    (tmp_path / "tills_and_one.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    subject = SubjectReference("tills_and_one.py").load()
    assert (subject.name, subject.part) == ("tills_and_one.py::small", "coin")
    named = SubjectReference("tills_and_one.py::Till").load()
    assert (named.name, named.part) == ("tills_and_one.py::Till", "step")


def test_a_class_that_needs_arguments_cannot_be_named(tmp_path, monkeypatch):
    text = TILL + "\n    def __init__(self, coins):\n        self.coins = coins\n"
    (tmp_path / "tills_of_sizes.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"Till\(\) raised TypeError: .*: name an object of the cl"):
        SubjectReference("tills_of_sizes.py::Till").load()


def test_a_subject_that_does_not_derive_is_accepted_if_it_has_everything():
    assert is_subject(Picky())
    outcome = Campaign(Picky(), "coin", 20, workers=0, store=":memory:").run()
    assert [fault.signature for fault in outcome.faults] == ["the bug of c"]


def test_one_that_does_not_derive_and_lacks_something_is_refused():
    lacking = Picky()
    del lacking.seconds
    with pytest.raises(
        UserError, match="picky: an incomplete subject, it has no seconds: derive P"
    ):
        Campaign(lacking, "coin", 20, store=":memory:")
    with pytest.raises(UserError, match="7 cannot be tested: name a subject, or derive its class"):
        Campaign(7, "coin", 20, store=":memory:")  # type: ignore[arg-type]


def test_an_object_with_a_space_and_no_generator_is_refused_by_name(tmp_path, swarmtest):
    (tmp_path / "dice.py").write_text(
        dedent(
            """
            from swarmtest import Space

            class Dice:
                space = Space(["odd"])
                def run(self, test): return None

            dice = Dice()
            """
        )
    )
    done = swarmtest("run", "dice.py", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "swarmtest: dice.py::dice: an incomplete subject, it has no generate: "
        "derive Dice from swarmtest.Subject\n"
    )


def test_a_subject_is_found_by_the_name_of_an_entry_point(tmp_path, swarmtest):
    install(
        tmp_path, "swarmtest.subjects", "corner-shop = tills_of_shops:Till", tills_of_shops=TILL
    )
    done = swarmtest(
        "run",
        "corner-shop",
        "--tests",
        "40",
        "--workers",
        "2",
        cwd=tmp_path,
        PYTHONPATH=str(tmp_path),
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("corner-shop: 3 features")
    assert "the till is full" in done.stdout


def test_coverage_of_an_entry_point_is_that_of_the_package_behind_it(tmp_path, monkeypatch):
    site, project = tmp_path / "site-packages", tmp_path / "project"
    for folder in (site, project):
        folder.mkdir()
    install(site, "swarmtest.subjects", "corner-shop = tills_of_shops:Till", tills_of_shops=TILL)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))
    with open_store(":memory:") as store:
        Campaign("corner-shop", "coin", 20, workers=1, store=store, coverage="line").run()
        reached = {target.function for target in store.targets().values() if target.kind == "line"}
    assert "Till.run" in reached


def test_a_name_that_nobody_offers_is_a_missing_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="no module named 'corner-shop'"):
        SubjectReference("corner-shop").load()


def test_a_returned_fault_is_the_fault():
    fault = Fault("exit", "status 3")
    subject = type("Exits", (Till,), {"run": lambda self, test: Result(Verdict.FAILED, fault)})()
    result = subject.execute(configured("pay"), seed=1)
    assert (result.fault, result.steps, len(result.test)) == (fault, 20, 20)
