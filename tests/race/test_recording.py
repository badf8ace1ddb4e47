"""Recordings tell which variables threads share, and where they touch them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from threaded_programs import AIRLINES, CRAWLER

from swarmtest.race.coverage.shared_variables import AccessRecording, shared_sites
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import free_run
from swarmtest.race.noise_settings import NoiseSettings
from swarmtest.race.weaving.sites import SITES

Load = Callable[[str], ModuleType]


def shared_of(program: ModuleType) -> set[str]:
    recording = AccessRecording()
    run = free_run(program.test, recording)
    assert (run.fault, run.problem) == (None, "")
    return {variable.label.partition(":")[2] for variable in recording.shared()}


WORKERS = """
    import threading

    class Box:
        def __init__(self, value):
            self.value = value

    def together(work, count=2):
        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""


def test_what_two_threads_write_is_shared(load: Load) -> None:
    program = load(
        WORKERS
        + """
    def test():
        box = Box(0)
        def work():
            box.value += 1
        together(work)
    """
    )
    assert shared_of(program) == {"Box.value"}


def test_what_threads_only_read_is_not_shared(load: Load) -> None:
    program = load(
        WORKERS
        + """
    def test():
        box, seen = Box(0), []
        together(lambda: box.value)
    """
    )
    assert shared_of(program) == set()


def test_what_each_thread_has_for_itself_is_not_shared(load: Load) -> None:
    """The objects of a thread that has ended may lie where those of the next one do."""
    program = load(
        WORKERS
        + """
    def work():
        for number in range(10):
            box = Box(number)
            box.value += 1

    def test():
        together(work, 4)
    """
    )
    assert shared_of(program) == set()


def test_what_is_handed_to_one_other_thread_is_not_shared(load: Load) -> None:
    program = load(
        WORKERS
        + """
    def test():
        box = Box(0)
        box.value = 1
        def work():
            box.value += 1
        together(work, 1)
    """
    )
    assert shared_of(program) == set()


def test_the_constructing_thread_counts_once_it_has_started_others(load: Load) -> None:
    program = load(
        WORKERS
        + """
    def test():
        box = Box(0)
        thread = threading.Thread(target=lambda: box.value)
        thread.start()
        box.value = 1
        thread.join()
    """
    )
    assert shared_of(program) == {"Box.value"}


def test_contents_of_lists_and_dictionaries_are_variables(load: Load) -> None:
    program = load(
        WORKERS
        + """
    names = []
    counts = {}

    def work():
        names.append("x")
        counts["x"] = counts.get("x", 0) + 1

    def test():
        together(work)
    """
    )
    assert shared_of(program) == {"names[]", "counts[]"}


def test_sites_that_no_recording_came_to_count_by_their_variable(load: Load) -> None:
    program = load(AIRLINES)
    recording = AccessRecording()
    free_run(program.test, recording)
    functions = {SITES[site].function for site in shared_sites([recording])}
    assert functions == {"Flight.sell_with_lock", "Flight.sell_without", "test"}


def test_noise_at_shared_sites_only_finds_the_shutdown_race(load: Load) -> None:
    program = load(CRAWLER)
    recording = AccessRecording()
    free_run(program.test, recording)
    shared = shared_sites([recording])
    settings = NoiseSettings(300, "sleep", 10, shared_only=True)
    found = [free_run(program.test, Noise(settings, seed, shared)).fault for seed in range(200)]
    assert any(found)
