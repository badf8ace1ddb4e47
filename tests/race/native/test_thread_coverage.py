"""Synchronisation, concurrent pairs and shared variables as targets."""

from __future__ import annotations

from thread_programs import DEADLOCK, PRIVATE, SEATS, Build, names

from swarmtest.race.native.runner import NativeRun, NativeThreads
from swarmtest.race.noise_settings import NoiseSettings

SLEEPS = NoiseSettings(500, ["sleep"])


def all_names(program: NativeThreads, kind: str) -> set[str]:
    runs = [program.run(SLEEPS, seed) for seed in range(30)]
    return set().union(*(names(run, kind) for run in runs))


def test_a_lock_that_makes_another_thread_wait_is_blocking_and_the_other_blocked(
    build: Build,
) -> None:
    found = all_names(NativeThreads([build(DEADLOCK)], seconds=60), "sync")
    assert "prog.c:4 lock visited" in found
    assert {"prog.c:4 lock blocking", "prog.c:12 lock blocked"} <= found
    assert "prog.c:6 unlock blocked" not in found


def test_pairs_tell_whether_the_thread_changed(build: Build) -> None:
    found = all_names(NativeThreads([build(SEATS, "-DRIGHT")]), "pair")
    assert "prog.c:8 lock then prog.c:11 unlock" in found
    assert "prog.c:11 unlock then another thread: prog.c:8 lock" in found


def test_only_variables_that_several_threads_touch_are_shared(build: Build) -> None:
    found = all_names(NativeThreads([build(PRIVATE, "-fsanitize=thread")]), "shared")
    assert found == {"prog.c:8 read", "prog.c:8 write"}


def test_targets_lie_in_their_source(build: Build) -> None:
    run = NativeThreads([build(SEATS)]).run(NoiseSettings(0), 0)
    assert run.hits is not None
    target = next(one for one in run.hits.targets() if one.name == "prog.c:23 lock visited")
    assert (target.file, target.line, target.function) == ("prog.c", 23, "sell")
    assert run.hits.catalogue.sources[target.source].text == SEATS


def test_without_debug_information_sites_are_functions_or_addresses(build: Build) -> None:
    program = build(SEATS, "-g0")
    run = NativeThreads([program]).run(NoiseSettings(0), 0)
    assert {"prog:sell lock visited", "prog:left unlock visited"} <= names(run, "sync")
    stripped = NativeThreads([build(SEATS, "-g0", "-s")]).run(NoiseSettings(0), 0)
    assert any(name.startswith("prog+0x") for name in names(stripped, "sync"))


def noises(run: NativeRun) -> int:
    return sum(thread.noises for thread in run.threads)


def test_noise_at_shared_variables_only_spares_private_ones(build: Build) -> None:
    program = NativeThreads([build(PRIVATE, "-fsanitize=thread")])
    everywhere = program.run(NoiseSettings(500, ["yield"], 1), 1)
    shared = program.run(NoiseSettings(500, ["yield"], 1, shared_only=True), 1)
    assert 0 < noises(shared) < noises(everywhere) / 4
