"""Tasks of asyncio under control: found, replayed, made small, explained; correct ones are left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.processes.fork import in_fork
from swarmtest.race.control.runner import (
    ControlledRun,
    controlled_run,
    minimised_schedule,
    nothing_to_schedule,
    replay,
)
from swarmtest.race.control.schedulers import (
    LateTimers,
    LoopReplay,
    RandomOrder,
    RandomWalk,
    Schedule,
    Switch,
    ThreadScheduler,
)
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.racer import Racer
from swarmtest.race.subject import ThreadsSubject
from swarmtest.race.timeline import rows_of

Load = Callable[[str], ModuleType]

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "race_asyncio_programs"
BUGGY = [
    "check_then_await_then_act",
    "stale_read",
    "order_by_sleeping",
    "iteration_across_await",
    "opposite_locks",
    "missed_event",
    "first_result_wins",
    "cancelled_in_between",
    "ready_in_order",
    "result_of_a_thread",
]
CORRECT = [
    "locked_counter",
    "queue_and_workers",
    "streams",
    "callbacks_in_order",
    "cancelled_cleanly",
    "threads_and_loop",
]


def program(load: Load, file: str, name: str) -> Callable[[], Any]:
    """One of the programs of the benchmark, as a function."""
    module = load((PROGRAMS / f"{file}.py").read_text())
    return lambda: asyncio.run(getattr(module, name)())


def failing(
    test: Callable[[], Any], make: Callable[[int], ThreadScheduler] = RandomWalk, runs: int = 300
) -> ControlledRun:
    """The first run that shows a fault."""
    return next(run for seed in range(runs) if (run := controlled_run(test, make(seed))).fault)


@pytest.mark.parametrize("name", BUGGY)
def test_a_bug_is_found_replayed_and_made_small(load: Load, name: str) -> None:
    test = program(load, "buggy", name)
    run = failing(test)
    assert run.fault
    again = Schedule.from_json(run.schedule.to_json())
    assert [replay(test, again).fault for _ in range(5)] == [run.fault] * 5
    small = minimised_schedule(test, run.schedule, run.fault)
    assert 1 <= len(small) <= 2
    assert [replay(test, small).fault for _ in range(5)] == [run.fault] * 5


@pytest.mark.parametrize("name", CORRECT)
@pytest.mark.parametrize("make", [RandomWalk, LateTimers])
def test_a_correct_program_gives_no_alarm(
    load: Load, name: str, make: Callable[[int], ThreadScheduler]
) -> None:
    test = program(load, "correct", name)
    runs = [controlled_run(test, make(seed)) for seed in range(60)]
    assert {(run.fault, run.problem) for run in runs} == {(None, "")}


@pytest.mark.parametrize("name", ["stale_read", "opposite_locks", "order_by_sleeping"])
def test_late_timers_alone_show_what_depends_on_time(load: Load, name: str) -> None:
    run = failing(program(load, "buggy", name), LateTimers)
    assert run.schedule.switches
    assert all(switch.late for switch in run.schedule.switches)


def test_late_timers_alone_keep_the_order_of_tasks(load: Load) -> None:
    test = program(load, "buggy", "ready_in_order")
    assert not any(controlled_run(test, LateTimers(seed)).fault for seed in range(100))


def test_the_same_seed_makes_the_same_run(load: Load) -> None:
    test = program(load, "buggy", "first_result_wins")
    runs = [controlled_run(test, RandomWalk(7)) for _ in range(5)]
    assert len({(run.schedule, run.steps, run.fault) for run in runs}) == 1


def test_sets_of_tasks_have_the_order_of_their_creation(load: Load) -> None:
    module = load("""
        import asyncio
        async def names():
            tasks = {asyncio.create_task(asyncio.sleep(0), name=str(n)) for n in range(9)}
            done, _ = await asyncio.wait(tasks)
            return [task.get_name() for task in done]
    """)
    orders: list[list[str]] = []
    for _ in range(3):
        controlled_run(lambda: orders.append(asyncio.run(module.names())), ThreadScheduler())
    assert orders == [[str(n) for n in range(9)]] * 3


def test_time_is_simulated(load: Load) -> None:
    module = load("""
        import asyncio, time
        async def wait():
            before = asyncio.get_running_loop().time(), time.monotonic()
            await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(7200))
            assert asyncio.get_running_loop().time() - before[0] >= 7200
            assert time.monotonic() - before[1] >= 7200
    """)
    run = controlled_run(lambda: asyncio.run(module.wait()), LateTimers(0), seconds=5)
    assert not run.fault
    assert not run.problem
    assert run.clock >= 7200


def test_a_child_process_gets_real_time(load: Load) -> None:
    module = load("""
        import asyncio, sys
        async def child():
            code = "import time; time.sleep(0.2); print('done')"
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
            )
            text, _ = await asyncio.wait_for(process.communicate(), 60)
            assert text.strip() == b"done"
        async def both():
            await asyncio.gather(child(), asyncio.sleep(0))
    """)
    run = controlled_run(lambda: asyncio.run(module.both()), RandomWalk(1), seconds=60)
    assert (run.fault, run.problem) == (None, "")


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        ("await asyncio.gather(fails(), breaks(), return_exceptions=True)", "AssertionError"),
        ("task = asyncio.create_task(breaks()); await asyncio.sleep(0.1)", "ValueError: lost"),
        ("asyncio.create_task(forever()); await asyncio.sleep(0.1)", "lost task: "),
        ("await asyncio.get_running_loop().create_future()", "lost wake-up: test"),
    ],
    ids=["swallowed by gather", "never asked for", "held by nobody", "never set"],
)
def test_what_asyncio_hides_is_a_fault(load: Load, body: str, signature: str) -> None:
    module = load(f"""
        import asyncio
        async def fails():
            assert False
        async def breaks():
            raise ValueError("lost")
        async def forever():
            await asyncio.get_running_loop().create_future()
        async def test():
            {body}
    """)
    fault = controlled_run(lambda: asyncio.run(module.test()), ThreadScheduler()).fault
    assert fault
    assert fault.signature.startswith(signature)


def test_a_deadlock_says_who_holds_what(load: Load) -> None:
    fault = failing(program(load, "buggy", "opposite_locks")).fault
    assert fault
    assert fault.kind == "deadlock"
    assert "main.1 waits for a lock that main.2 holds" in fault.details


def test_the_picture_shows_where_tasks_wait(load: Load) -> None:
    test = program(load, "buggy", "stale_read")
    run = failing(test)
    assert run.fault
    small = minimised_schedule(test, run.schedule, run.fault)
    rows = rows_of(replay(test, small, traced=True).trace)
    acts = [(row.thread, action) for row in rows for action in row.does]
    assert acts.count(("main.1", "awaits")) == 2
    assert len([action for _, action in acts if "writes account[]" in action]) == 2
    assert {row.thread for row in rows} == {"main", "main.1", "main.2"}


def test_one_task_alone_gives_nothing_to_schedule() -> None:
    run = controlled_run(lambda: asyncio.run(asyncio.sleep(1)), RandomWalk(0))
    assert "one task of asyncio only" in nothing_to_schedule(run)


def test_a_schedule_that_names_no_ready_task_misses_a_switch() -> None:
    order = LoopReplay([Switch("main.1", 1, "main.7", step=True)])
    one = type("One", (), {"name": "main.1", "steps": 0})()
    assert order.choose([one, one]) == 0
    assert order.missed == 1


def test_no_run_is_drawn_that_would_be_plain() -> None:
    drawn = [RandomOrder(seed) for seed in range(100)]
    assert all(order._late or order._reorder for order in drawn)
    assert not any(RandomOrder(seed, reorders=False)._reorder for seed in range(100))


FLIGHT = """
    import asyncio

    async def sell_out():
        left = 1
        async def sell(delay):
            nonlocal left
            await asyncio.sleep(delay)
            if left:
                await asyncio.sleep(0.001)
                left -= 1
        await asyncio.gather(sell(0.01), sell(0.02))
        assert left == 0

    async def test_sell_out():
        await sell_out()

    async def in_turn():
        log = []
        async def enter(n):
            log.append(n)
        await asyncio.gather(enter(0), enter(1))
        assert log == [0, 1]
"""


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("sell_out", "happens with asyncio's own order of tasks, when timers are late"),
        ("test_sell_out", "happens with asyncio's own order of tasks, when timers are late"),
        ("in_turn", "seen when ready tasks run in another order than asyncio's"),
    ],
)
def test_the_label_says_whether_tasks_have_to_be_reordered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, truth: str
) -> None:
    import textwrap

    monkeypatch.chdir(tmp_path)
    Path("flight.py").write_text(textwrap.dedent(FLIGHT))

    def label() -> str:
        subject = ThreadsSubject(f"race --control flight.py::{name}")
        for trial in range(200):
            result = subject.execute(subject.space.default(), trial)
            if result.fault is not None:
                from swarmtest.race.race_test import RaceTest

                explained = subject.explained(RaceTest.from_json(result.test)).explanation
                assert explained is not None
                return explained.truth
        raise UserError("no fault")

    assert in_fork(label, 60).startswith(truth)


def test_noise_makes_timers_late_where_there_are_tasks_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import textwrap

    monkeypatch.chdir(tmp_path)
    Path("flight.py").write_text(textwrap.dedent(FLIGHT))

    def faults() -> int:
        from swarmtest.race.noise_settings import NoiseSettings

        racer = Racer(RacedProgram.of("flight.py::sell_out"))
        run = partial(racer.run, NoiseSettings())
        return sum(run(seed).fault is not None for seed in range(30))

    assert in_fork(faults, 60)


ANYIO = """
    import asyncio
    import pytest

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @pytest.mark.anyio
    async def test_cache():
        made = []
        async def get(delay):
            await asyncio.sleep(delay)
            if not made:
                await asyncio.sleep(0.01)
                made.append(1)
        await asyncio.gather(get(0), get(0.05))
        assert len(made) == 1
"""


def test_a_run_that_fails_leaves_no_closed_loop_of_anyio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import textwrap

    monkeypatch.chdir(tmp_path)
    Path("test_anyio.py").write_text(textwrap.dedent(ANYIO))

    def faults() -> list[str]:
        racer = Racer(RacedProgram.of("test_anyio.py::test_cache"))
        failing = next(s for s in range(100) if racer.scheduled(RandomWalk(s)).fault)
        runs = [racer.scheduled(RandomWalk(failing)) for _ in range(3)]
        return [run.fault.signature if run.fault else run.problem for run in runs]

    signature = "AssertionError [test_cache: assert len(made) == 1]"
    assert in_fork(faults, 60) == [signature] * 3
