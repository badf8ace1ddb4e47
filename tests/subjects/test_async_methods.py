"""Async methods run in an event loop per test; what nobody awaits is refused when it is read."""

from __future__ import annotations

import asyncio
import subprocess
import warnings
from textwrap import dedent
from typing import Any

import pytest
from pytest_processes import pytest_words

from swarmtest import Machine, Pool, UserError, action, integers, invariant
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.api import api_machine

MACHINE = """
    from swarmtest import Machine, action, invariant

    class Lamp(Machine):
        {start} start(self): pass
        {stop} stop(self): pass
        @action(when={when})
        {action} switch(self): {body}
        @invariant
        {invariant} is_well(self): return True
"""
PLAIN = {
    **dict.fromkeys(("start", "stop", "action", "invariant"), "def"),
    "when": "None",
    "body": "pass",
}


def write(place, **parts):
    text = dedent(MACHINE).format(**PLAIN | parts)
    (place / "test_lamp.py").write_text(text)


class LampMachine(Machine):
    steps = 8
    ended: list[str] = []
    lamps = Pool()

    async def start(self):
        await asyncio.sleep(0)
        self.level, self.loop = 0, asyncio.get_running_loop()

    @action(level=integers(0, 9))
    async def light(self, level):
        await asyncio.sleep(0)
        self.level = level

    @action
    async def both(self):
        await asyncio.gather(self.light(1), self.light(2))

    @action(into=lamps)
    async def borrow(self):
        assert asyncio.get_running_loop() is self.loop
        return "lamp"

    @action(lamp=lamps)
    def shine(self, lamp):  # a plain method of such a machine runs in the loop, too
        self.task = asyncio.create_task(self.light(lamp == "lamp"))

    @invariant
    async def in_range(self):
        return self.level < 9

    async def stop(self):
        await asyncio.sleep(0)
        self.ended.append(type(self.task).__name__ if hasattr(self, "task") else "")


class Dimmed(LampMachine):
    async def start(self):
        await super().start()
        self.dimmed = True

    @action
    async def dim(self):
        assert self.dimmed


@pytest.mark.parametrize("machine", [LampMachine, Dimmed])
def test_all_methods_of_an_async_machine_run_in_one_loop(machine):
    subject = MachineSubject(machine)
    machine.ended.clear()
    results = [subject.execute(subject.space.default(), seed) for seed in range(20)]
    assert {result.fault.signature for result in results if result.fault} == {
        "invariant in_range after light: InvariantViolated: in_range returned False"
    }
    assert len(machine.ended) == 20
    assert "Task" in machine.ended
    failing = next(result for result in results if result.fault)
    assert subject.replay(failing.test).fault == failing.fault


def test_an_async_test_prints_as_code_that_runs(capsys):
    subject = MachineSubject(Dimmed)
    test = subject.test_of(subject.space.configuration(["dim", "borrow", "shine"]), seed=3)
    code = subject.code(test)
    assert "await machine.dim()" in code
    assert "    machine.shine(v" in code
    Dimmed.ended.clear()
    exec(compile(code, "printed", "exec"), {})
    assert len(Dimmed.ended) == 1


class Forgotten(Machine):
    @action
    async def forget(self):
        async def fail():
            await asyncio.sleep(0)
            raise LookupError("nobody awaits this")

        self.tasks = {asyncio.create_task(fail())}

    @action
    async def collect(self):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.tasks = set()

    @action
    async def wait_for_ever(self):
        self.waiting = asyncio.create_task(asyncio.sleep(1e6))


def test_what_a_task_raises_that_nobody_awaits_is_a_fault():
    subject = MachineSubject(Forgotten, steps=20)
    result = subject.execute(subject.space.configuration(["forget", "collect"]), seed=1)
    assert result.fault is not None
    assert "LookupError: nobody awaits this" in result.fault.signature
    assert result.fault.kind == "exception"


def test_tasks_are_cancelled_when_a_test_ends():
    subject = MachineSubject(Forgotten, steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert subject.execute(subject.space.configuration(["wait_for_ever"]), 0).fault is None


def test_a_test_does_not_run_inside_of_another_loop():
    subject = MachineSubject(Forgotten, steps=2)

    async def main():
        subject.execute(subject.space.configuration(["wait_for_ever"]), 0)

    with pytest.raises(UserError, match="an event loop of their own"):
        asyncio.run(main())


class Account:
    def __init__(self):
        self.balance = 0

    async def pay(self, amount: int) -> None:
        await asyncio.sleep(0)
        if amount < 0:
            raise ValueError(amount)
        self.balance += amount
        assert self.balance < 20

    def peek(self) -> int:
        return self.balance


def test_the_async_methods_of_a_class_are_awaited():
    machine: Any = api_machine(Account)
    subject = MachineSubject(machine)
    results = [subject.execute(subject.space.default(), seed) for seed in range(9)]
    failed = next(result for result in results if result.fault)
    assert "Account.pay: assert self.balance < 20" in str(failed.fault)
    assert machine.calls["pay", False] > 0
    code = subject.code(failed.test)
    assert "    await subject.pay(amount=" in code
    with pytest.raises(AssertionError):
        exec(compile(code, "printed", "exec"), {})


def test_a_derived_machine_is_written_with_async_actions(swarmtest, tmp_path):
    (tmp_path / "lamps.py").write_text("class Lamp:\n    async def switch(self): assert False\n")
    done = swarmtest("init", "--api", "lamps:Lamp", cwd=tmp_path)
    assert "    async def switch(self):\n        return await self.object.switch()\n" in done.stdout
    (tmp_path / "machine.py").write_text(done.stdout)
    found = swarmtest("run", "machine.py", "--tests", "5", cwd=tmp_path)
    assert found.returncode == 1, found.stderr


def test_an_async_generator_is_refused(swarmtest, refused, tmp_path):
    write(tmp_path, action="async def", body="yield 1")
    done = swarmtest("check", "test_lamp.py", cwd=tmp_path)
    refused(done, "action Lamp.switch is an async generator")


def test_an_async_guard_is_refused(swarmtest, refused, tmp_path):
    write(tmp_path, when="ready")
    text = (tmp_path / "test_lamp.py").read_text()
    (tmp_path / "test_lamp.py").write_text("async def ready(machine): return False\n" + text)
    refused(swarmtest("check", "test_lamp.py", cwd=tmp_path), "its guard (when=) is an async")


def test_an_action_with_yield_is_refused(swarmtest, refused, tmp_path):
    write(tmp_path, body="yield 1")
    refused(swarmtest("check", "test_lamp.py", cwd=tmp_path), "switch contains yield")


def test_a_rule_of_hypothesis_is_refused(swarmtest, refused, tmp_path):
    (tmp_path / "lamps.py").write_text(
        dedent("""
        from hypothesis.stateful import RuleBasedStateMachine, rule

        class Lamp(RuleBasedStateMachine):
            @rule()
            async def switch(self): assert False
        """)
    )
    refused(swarmtest("check", "lamps.py", cwd=tmp_path), "Lamp.switch is an async function")


def test_pytest_runs_async_actions(tmp_path):
    write(tmp_path, action="async def", body="assert False, 'dark'")
    words = pytest_words("-p", "swarmtest.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "AssertionError: dark" in done.stdout
