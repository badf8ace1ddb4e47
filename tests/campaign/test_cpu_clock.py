"""The CPU time of a test is that of every process that it causes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from native_programs import need

from swarmtest import Budget, Campaign, Machine, action, swarm
from swarmtest.campaign import Limits
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.coverage.native.program import Program
from swarmtest.store import open_store

BURN = """\
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef PERSISTENT
int swarmtest_next(void);
#else
static int swarmtest_next(void) { static int calls; return !calls++; }
#endif
static void burn(double seconds) {
  struct timespec now, begun;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
  do
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  while (now.tv_sec - begun.tv_sec + 1e-9 * (now.tv_nsec - begun.tv_nsec) < seconds);
}
int main(int count, char **words) {
  (void)words;
  while (swarmtest_next()) {
    if (count > 1 && fork() == 0) {  /* a child that nobody waits for, in a session of its own */
      setsid();
      burn(0.1);
      _exit(0);
    }
    burn(0.1);
    if (count > 1)
      sleep(1);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def burner(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Programs that use 0.1 s of CPU for a test, and with an argument 0.2 s."""
    need("gcc", "addr2line")
    directory = tmp_path_factory.mktemp("burner")
    source = directory / "burn.c"
    source.write_text(BURN)
    for name, flags in {"once": [], "loop": ["-DPERSISTENT"]}.items():
        words = ["gcc", "-o", str(directory / name), str(source), *flags]
        subprocess.run(compiler_command(words), check=True)
    return {"once": str(directory / "once"), "loop": str(directory / "loop")}


WAYS: dict[str, dict[str, Any]] = {
    "new process": {},
    "fork server": {"fork_server": True},
    "persistent": {"persistent": 5},
}


def make_program(burner: dict[str, str], way: str, *words: str) -> Program:
    name = "loop" if way == "persistent" else "once"
    return Program([burner[name], *words], coverage="none", **WAYS[way])


def cpu_of(store: str) -> list[float]:
    with open_store(store) as opened:
        return [trial.cpu_ns / 1e9 for trial in opened.trials(1)]


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("workers", [0, 1])
def test_a_machine_is_charged_for_the_program_that_it_runs(
    burner: dict[str, str], way: str, workers: int, tmp_path: Path
) -> None:
    program = make_program(burner, way)

    class Burner(Machine):
        steps = 1

        @action
        def burn(self) -> None:
            program.run(b"")

    store = str(tmp_path / "burn.db")
    Campaign(Burner, "default", 6, workers=workers, store=store).run()
    seconds = cpu_of(store)
    assert len(seconds) == 6
    # 0.1 s of the program, once; the rest is what starting it and this process take.
    assert all(each >= 0.0999 for each in seconds)
    assert sorted(seconds)[3] < 0.19
    program.close()


@pytest.mark.parametrize("way", list(WAYS))
def test_an_own_loop_is_charged_for_the_program_that_it_runs(
    burner: dict[str, str], way: str, tmp_path: Path
) -> None:
    store = str(tmp_path / "burn.db")
    with make_program(burner, way) as program:
        for trial in swarm(["a", "b"], tests=5, store=store):
            program.run(b"")
            trial.record()
    seconds = cpu_of(store)
    assert all(each >= 0.0999 for each in seconds)
    assert sorted(seconds)[2] < 0.19


@pytest.mark.parametrize("way", ["new process", "fork server"])
def test_a_process_that_a_test_leaves_behind_counts(burner: dict[str, str], way: str) -> None:
    with make_program(burner, way, "more") as program:
        assert program.run(b"").cpu_seconds >= 0.1999


def test_the_end_of_a_fork_server_is_charged_to_no_test(
    burner: dict[str, str], tmp_path: Path
) -> None:
    store = str(tmp_path / "burn.db")
    for trial in swarm(["a"], tests=6, store=store):
        if trial.number == 0:
            program = make_program(burner, "fork server")
        if trial.number < 5:
            program.run(b"")
        else:
            program.close()
        trial.record()
    assert cpu_of(store)[5] < 0.09


def test_processes_that_a_machine_starts_by_itself_count(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.1: pass"

    class Starter(Machine):
        steps = 1

        @action
        def start_python(self) -> None:
            subprocess.run([sys.executable, "-S", "-c", burn], check=True)

    store = str(tmp_path / "start.db")
    Campaign(Starter, "default", 4, workers=1, store=store).run()
    assert all(each >= 0.1 for each in cpu_of(store))


def test_a_budget_of_cpu_time_counts_the_program(burner: dict[str, str], tmp_path: Path) -> None:
    program = make_program(burner, "fork server")

    class Budgeted(Machine):
        steps = 1

        @action
        def burn(self) -> None:
            program.run(b"")

    store = str(tmp_path / "budget.db")
    budget = Budget(cpu_seconds=0.5)
    outcome = Campaign(Budgeted, "default", budget, workers=1, store=store).run()
    # Five tests use it up; what was handed out when it was up is recorded too.
    assert outcome.progress.cpu_seconds >= 0.5
    assert outcome.progress.tests < 60
    program.close()


def test_a_test_that_hangs_is_charged_for_what_its_processes_did(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.2: pass\ntime.sleep(60)"

    class Hanging(Machine):
        steps = 1

        @action
        def hang(self) -> None:
            subprocess.run([sys.executable, "-S", "-c", burn], check=True)

    store = str(tmp_path / "hang.db")
    Campaign(Hanging, "default", 1, workers=1, limits=Limits(seconds=3), store=store).run()
    (seconds,) = cpu_of(store)
    assert 0.2 <= seconds < 2
