"""What users do to a campaign that is not in the manual."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from swarmtest import Budget, Campaign, Machine, Space, UserError, action, open_store, swarm
from swarmtest.campaign import Limits
from swarmtest.strategies import Stream
from swarmtest.strategies.layered import FAMILIES, Layered, settled, sizes_of
from swarmtest.subjects import MachineSubject


@pytest.fixture
def place(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(dedent(text))
        return tmp_path

    return write


def test_a_module_that_starts_a_campaign_when_imported_is_refused(place, swarmtest, refused):
    cwd = place(
        "unguarded.py",
        """
        from swarmtest import Budget, Campaign, Machine, action

        class Lamp(Machine):
            @action
            def switch(self): pass

        Campaign(Lamp, budget=Budget(tests=5), workers=1, store=":memory:").run()
        """,
    )
    refused(swarmtest("run", "unguarded.py", "-n", 5, cwd=cwd), "__main__", "unguarded.py")


def test_programs_that_hang_in_two_places_show_two_faults_whatever_the_limit(place, swarmtest):
    cwd = place(
        "hangs.py",
        """
        from swarmtest import Machine, action

        def lock_a():
            while True: pass

        def lock_b():
            while True: pass

        class Hangs(Machine):
            steps = 1
            @action
            def a(self): lock_a()
            @action
            def b(self): lock_b()
        """,
    )
    found = []
    for limit in ("0.3s", "0.6s"):
        store = cwd / f"{limit}.db"
        swarmtest(
            "run",
            "hangs.py",
            "-n",
            4,
            "-s",
            "complete",
            "--no-reduce",
            "--timeout",
            limit,
            "--store",
            store,
            cwd=cwd,
        )
        with open_store(str(store)) as opened:
            found.append({(fault.id, fault.signature) for fault in opened.faults(1)})
    assert found[0] == found[1]
    assert {signature for _, signature in found[0]} == {
        "timeout [a > lock_a]",
        "timeout [b > lock_b]",
    }


class Slow(Machine):
    steps = 1

    @action
    def wait(self):
        time.sleep(0.01)


def test_a_campaign_that_is_slow_to_listen_makes_no_test_time_out():
    naps = iter([2.5])

    def dawdle(progress, faults):
        time.sleep(next(naps, 0))

    outcome = Campaign(
        Slow, "all-on", Budget(tests=300), workers=1, store=":memory:",
        limits=Limits(seconds=2), on_progress=dawdle,
    ).run()  # fmt: skip
    assert next(naps, None) is None
    assert outcome.faults == []


class Quitter:
    """A strategy that ends its process."""

    def ask(self, space, trial, rng):
        if trial == 3:
            import os

            os._exit(1)
        return space.default()


def test_a_strategy_that_ends_the_process_is_an_error_not_a_hang():
    with pytest.raises(UserError, match="keep dying between tests"):
        Campaign(Slow, Quitter(), Budget(tests=20), workers=1, store=":memory:").run()


class Shelf:
    """A program whose `is_full` may raise."""

    def is_full(self):
        raise RuntimeError("the shelf is broken")


def test_a_fault_of_the_program_in_a_guard_says_so():
    class Guarded(Machine):
        @action(when=lambda self: Shelf().is_full())
        def a(self):
            pass

    subject = MachineSubject(Guarded)
    fault = subject.execute(subject.space.default(), 1).fault
    assert fault is not None
    assert fault.signature.startswith("guard of a: RuntimeError")


class Typo(Machine):
    """A machine with two guards, both of which have the same typo."""

    def start(self):
        self.items = []

    def has_any(self):
        return self.itmes  # type: ignore[attr-defined]  # here

    @action
    def push(self):
        self.items.append(1)

    @action(when=lambda self: self.items and self.itmes)
    def pop(self):
        self.items.pop()

    @action(when=lambda self: self.items and self.has_any())
    def peek(self):
        pass


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("guarded", ["pop", "peek"])
def test_a_typo_in_a_guard_is_an_error_of_the_machine_with_its_line(guarded, workers):
    machine = type("Only", (Typo,), {"peek" if guarded == "pop" else "pop": None})
    lines = Path(__file__).read_text().splitlines()
    sign = "items and self.itmes" if guarded == "pop" else "# here"
    line = next(i for i, text in enumerate(lines, 1) if sign in text and "sign =" not in text)
    with pytest.raises(UserError) as error:
        Campaign(machine, "default", Budget(tests=20), workers=workers, store=":memory:").run()
    assert str(error.value) == (
        f"machine 'Only': the guard (when=) of '{guarded}' raised "
        f"AttributeError: 'Only' object has no attribute 'itmes' ({__file__}:{line})"
    )


def test_a_typo_in_a_loop_of_ones_own_is_not_a_fault_of_the_program():
    def go():
        for trial in swarm(["push", "pop"], tests=3, store=":memory:"):
            with trial:
                "psuh" in trial  # noqa: B015

    with pytest.raises(UserError, match="did you mean 'push'"):
        go()


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("family", [name for name, _, _ in FAMILIES])
def test_layered_knows_how_many_features_a_family_includes(family, count):
    space = Space([f"f{number}" for number in range(count)])
    sizes = sizes_of(family, count)
    if not sizes:
        assert family in ("uniform", "power", "beta")
        return
    draw = next(draw for name, _, draw in FAMILIES if name == family)
    trials = 3000
    found = Counter(
        sum(weight > 0 for weight in settled(space.feature_names, draw(space, Stream(11, trial))))
        for trial in range(trials)
    )
    assert sum(sizes[1:]) == pytest.approx(1)
    for size, odds in enumerate(sizes[1:], 1):
        margin = 5 * (odds * (1 - odds) / trials) ** 0.5 + 1 / trials
        assert abs(found[size] / trials - odds) <= margin, size


def test_features_of_one_group_get_one_weight_where_layered_works_by_groups():
    from swarmtest import Feature

    space = Space([Feature("read", group="io"), Feature("write", group="io"), Feature("seek")])
    seen = 0
    for trial in range(400):
        proposal = Layered().ask(space, trial, Stream(5, trial))
        read, write = proposal.configuration["read"], proposal.configuration["write"]
        if proposal.origin == "groups" and read and write:
            seen += 1
            assert read == write
    assert seen > 20


def test_a_class_with_methods_called_like_a_machines_own_is_tested_all_the_same(place, swarmtest):
    cwd = place(
        "timer.py",
        """
        class Timer:
            def start(self): self.on = True
            def stop(self): assert getattr(self, "on", False), "not started"
            def steps(self): pass
        """,
    )
    done = swarmtest("run", "timer:Timer", "--api", "-n", 50, cwd=cwd)
    assert done.returncode == 1, done.stderr
    assert "3 features" in done.stdout
    assert "subject.stop()" in done.stdout


def test_any_exception_of_any_module_can_be_a_correct_outcome(place, swarmtest):
    cwd = place(
        "reader.py",
        """
        import json
        class Reader:
            def read(self, text: str): json.loads("{" + text)
            def fail(self): raise OSError("disk")
        """,
    )
    raises = ("--raises", "json.JSONDecodeError", "--raises", "OSError")
    done = swarmtest("run", "reader:Reader", "--api", "-n", 30, *raises, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
