"""Noise brings out what plain runs hardly show; a right program stays right under it."""

from __future__ import annotations

import itertools

import pytest
from thread_programs import (
    ATOMICS,
    COUNTER,
    CRASH,
    DEADLOCK,
    EARLY,
    EVERYTHING,
    FORKS,
    LOST_WAKE_UP,
    QUEUE,
    SEATS,
    SLEEPER,
    Build,
    failures,
    names,
)

from swarmtest.race.native.runner import NativeRun, NativeThreads
from swarmtest.race.noise_settings import HEURISTICS, KINDS, NoiseSettings

SLEEPS = NoiseSettings(500, ["sleep"], strength=10)
RUNS = 80
"""The faults below show in more than one run of six: 80 runs miss one in two million times."""


def first_failure(program: NativeThreads, settings: NoiseSettings = SLEEPS) -> NativeRun:
    runs = (program.run(settings, seed) for seed in range(RUNS))
    return next(itertools.filterfalse(lambda run: run.fault is None, runs))


def test_a_lost_update_is_found_where_every_access_is_a_probe(build: Build) -> None:
    run = first_failure(NativeThreads([build(COUNTER, "-fsanitize=thread")]))
    assert run.accesses
    assert run.fault is not None
    assert run.fault.signature == "exit status 1: an update was lost: #"


def test_objects_of_clang_linked_by_gcc_are_seen_as_well(build: Build) -> None:
    build(COUNTER, "-fsanitize=thread", "-c", compiler="clang", name="counter.o")
    program = build("", "counter.o", "-fsanitize=thread")
    assert first_failure(NativeThreads([program])).accesses


def test_a_deadlock_is_told_at_once_with_who_holds_what(build: Build) -> None:
    run = first_failure(NativeThreads([build(DEADLOCK)], seconds=600))
    assert run.fault is not None
    assert run.fault.kind == "deadlock"
    assert run.fault.signature == "deadlock of 2 threads: lock in first, lock in second"
    assert run.fault.details.splitlines() == [
        "main: join at prog.c:21",
        "main.1: lock at prog.c:5; main.2 holds it since prog.c:11",
        "main.2: lock at prog.c:12; main.1 holds it since prog.c:4",
    ]
    assert run.wall_seconds < 60


def test_a_lost_wake_up_is_told_at_once(build: Build) -> None:
    run = first_failure(NativeThreads([build(LOST_WAKE_UP)], seconds=600))
    assert run.fault is not None
    assert run.fault.kind == "lost wake-up"
    assert run.fault.signature == "lost wake-up: condition wait in consume"
    assert run.wall_seconds < 60


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_finds_two_sections_that_should_be_one(build: Build, kind: str) -> None:
    run = first_failure(NativeThreads([build(SEATS)]), NoiseSettings(200, [kind]))
    assert run.fault is not None
    assert run.fault.signature == "exit status 1: sold # of # seats"


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_a_right_program_stays_right(build: Build, heuristic: str) -> None:
    program = NativeThreads([build(SEATS, "-DRIGHT")])
    runs = [
        program.run(NoiseSettings.of_names(300, ["mixed"], 10, [heuristic]), seed)
        for seed in range(10)
    ]
    assert failures(runs) == set()
    assert sum(thread.noises for run in runs for thread in run.threads) > 0


@pytest.mark.parametrize(
    ("source", "compiler"), [(ATOMICS, "gcc"), (QUEUE, "g++"), (EVERYTHING, "gcc")]
)
@pytest.mark.parametrize("sanitize", [[], ["-fsanitize=thread"]])
def test_locks_waits_atomics_and_objects_work_as_without_us(
    build: Build, source: str, compiler: str, sanitize: list[str]
) -> None:
    program = NativeThreads([build(source, "-O1", *sanitize, compiler=compiler)])
    runs = [program.run(NoiseSettings(50, strength=3), seed) for seed in range(3)]
    assert failures(runs) == set()
    assert all(run.accesses == bool(sanitize) for run in runs)


def test_what_a_program_that_crashed_had_reached_is_known(build: Build) -> None:
    run = NativeThreads([build(CRASH)]).run(NoiseSettings(0), 0)
    assert run.fault is not None
    assert (run.fault.kind, run.fault.signature) == ("signal", "SIGSEGV")
    assert "prog.c:5 lock visited" in names(run, "sync")


def test_threads_of_forked_processes_are_named_after_them(build: Build) -> None:
    run = NativeThreads([build(FORKS)], expected=[3]).run(SLEEPS, 1)
    assert run.fault is None
    assert [thread.name for thread in run.threads] == [
        "main",
        "process 2",
        "process 2.1",
        "process 2.2",
    ]
    assert "prog.c:6 lock visited" in names(run, "sync")


def test_a_run_that_only_takes_long_is_a_timeout_that_says_where_it_stood(build: Build) -> None:
    run = NativeThreads([build(SLEEPER)], seconds=1).run(NoiseSettings(0), 0)
    assert run.fault is not None
    assert (run.fault.kind, run.fault.signature) == ("timeout", "timeout")
    assert "main.1: sleep at prog.c:4, for a limited time" in run.fault.details


def test_sleeps_end_early_only_when_timeouts_are_tampered_with(build: Build) -> None:
    program = build(EARLY)
    short = NativeThreads([program, "20"])
    assert short.run(NoiseSettings(1000, ["yield"]), 1).status == 0
    # Long enough that one of them ends early although the machine is busy; it takes no more.
    long = NativeThreads([program, "1000"], seconds=60)
    tampered = NoiseSettings(1000, "yield", tamper_timeouts=True)
    assert long.run(tampered, 1).status == 1


def decisions(run: NativeRun) -> dict[str, tuple[int, int]]:
    return {thread.name: (thread.probes, thread.decisions) for thread in run.threads}


@pytest.mark.parametrize("same", [True, False])
def test_the_seed_decides_where_noise_is_made(build: Build, same: bool) -> None:
    program = NativeThreads([build(EVERYTHING)])
    settings = NoiseSettings(200, strength=2)
    one, other = program.run(settings, 5), program.run(settings, 5 if same else 6)
    assert (decisions(one) == decisions(other)) == same
