"""Programs that use C11's own threads, mutexes and conditions."""

from __future__ import annotations

from thread_programs import Build

from swarmtest.race.native.runner import NativeThreads
from swarmtest.race.noise_settings import NoiseSettings

DEADLOCK = """\
#include <threads.h>
static mtx_t a, b;
static int forth(void *x) {
  mtx_lock(&a);
  mtx_lock(&b);
  mtx_unlock(&b);
  return mtx_unlock(&a) != thrd_success;
}
static int back(void *x) {
  mtx_lock(&b);
  mtx_lock(&a);
  mtx_unlock(&a);
  return mtx_unlock(&b) != thrd_success;
}
int main(void) {
  thrd_t threads[2];
  int one = 9, two = 9;
  mtx_init(&a, mtx_plain), mtx_init(&b, mtx_plain);
  thrd_create(&threads[0], forth, 0);
  thrd_create(&threads[1], back, 0);
  thrd_join(threads[0], &one), thrd_join(threads[1], &two);
  return one + two;
}
"""
MAILBOX = """\
#include <threads.h>
#include <time.h>
static mtx_t lock;
static cnd_t arrived;
static int mail;
static int take(void *x) {
  mtx_lock(&lock);
  while (!mail) {
    struct timespec until;
    timespec_get(&until, TIME_UTC);
    until.tv_sec += 5;
    cnd_timedwait(&arrived, &lock, &until);
  }
  mtx_unlock(&lock);
  return mtx_trylock(&lock) == thrd_success ? mtx_unlock(&lock), 3 : 3;
}
int main(void) {
  thrd_t taker;
  int answer = 0;
  mtx_init(&lock, mtx_plain | mtx_timed), cnd_init(&arrived);
  thrd_create(&taker, take, 0);
  thrd_sleep(&(struct timespec){0, 100000}, 0);
  mtx_lock(&lock);
  mail = 1;
  cnd_broadcast(&arrived);
  mtx_unlock(&lock);
  thrd_join(taker, &answer);
  return answer != 3;
}
"""


def test_a_deadlock_of_c11_mutexes_is_told_at_once(build: Build) -> None:
    program = NativeThreads([build(DEADLOCK)], seconds=60)
    settings = NoiseSettings(500, ["sleep"], 20)
    faults = [run.fault for seed in range(40) if (run := program.run(settings, seed)).fault]
    signatures = {fault.signature for fault in faults if fault}
    assert signatures == {"deadlock of 2 threads: lock in back, lock in forth"}
    assert faults[0] is not None
    assert "main.2 holds it since" in faults[0].details


def test_c11_conditions_and_sleeps_work_as_without_us_and_are_covered(build: Build) -> None:
    program = NativeThreads([build(MAILBOX)], seconds=60)
    runs = [program.run(NoiseSettings(500, ["yield", "sleep"], 3), seed) for seed in range(8)]
    assert not any(run.fault for run in runs)
    reached = {str(t) for run in runs if run.hits for t in run.hits.targets() if t.kind == "sync"}
    for operation in ("lock", "broadcast", "sleep", "join", "trylock"):
        assert any(f" {operation} visited" in name for name in reached), operation
