"""Small programs with threads, each with one thing that can go wrong, and how they are built."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from swarmtest.race.native.runner import NativeRun

Build = Callable[..., Path]
PACKAGES = {"gcc": "gcc", "g++": "g++", "clang": "clang", "addr2line": "binutils"}

COUNTER = """\
#include <pthread.h>
#include <stdio.h>
static int counter;
static void *work(void *x) {
  int own = 0;
  for (int i = 0; i < 20; i++) {
    own += i;
    counter++;
  }
  return x;
}
int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  if (counter == 40) return 0;
  fprintf(stderr, "an update was lost: %d\\n", counter);
  return 1;
}
"""

PRIVATE = """\
#include <pthread.h>
static int counter, private[2];
static void *work(void *x) {
  int *own = x;
  for (int i = 0; i < 200; i++) {
    *own += i;
    if (i % 20 == 0)
      counter++;
  }
  return x;
}
int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, &private[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  return 0;
}
"""

DEADLOCK = """\
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *x) {
  pthread_mutex_lock(&a);
  pthread_mutex_lock(&b);
  pthread_mutex_unlock(&b);
  pthread_mutex_unlock(&a);
  return x;
}
static void *second(void *x) {
  pthread_mutex_lock(&b);
  pthread_mutex_lock(&a);
  pthread_mutex_unlock(&a);
  pthread_mutex_unlock(&b);
  return x;
}
int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], 0, first, 0);
  pthread_create(&threads[1], 0, second, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  return 0;
}
"""

LOST_WAKE_UP = """\
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static void *consume(void *x) {
  pthread_mutex_lock(&lock);
  pthread_cond_wait(&filled, &lock);
  pthread_mutex_unlock(&lock);
  return x;
}
static void *produce(void *x) {
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&filled);
  pthread_mutex_unlock(&lock);
  return x;
}
int main(void) {
  pthread_t threads[2];
  pthread_create(&threads[0], 0, consume, 0);
  pthread_create(&threads[1], 0, produce, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  return 0;
}
"""

SEATS = """\
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t open;
static int seats = 10, sold;
#ifdef RIGHT
static int sell(void) {
  pthread_mutex_lock(&lock);
  int any = seats > 0;
  if (any) seats--, sold++;
  pthread_mutex_unlock(&lock);
  return any;
}
#else
static int left(void) {
  pthread_mutex_lock(&lock);
  int now = seats;
  pthread_mutex_unlock(&lock);
  return now;
}
static int sell(void) {
  if (left() <= 0) return 0;
  pthread_mutex_lock(&lock);
  seats--, sold++;
  pthread_mutex_unlock(&lock);
  return 1;
}
#endif
static void *seller(void *x) {
  pthread_barrier_wait(&open);
  while (sell()) {}
  return x;
}
int main(void) {
  pthread_t threads[2];
  pthread_barrier_init(&open, 0, 2);
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, seller, 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  if (sold == 10) return 0;
  fprintf(stderr, "sold %d of 10 seats\\n", sold);
  return 1;
}
"""

ATOMICS = """\
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
static _Atomic int sum;
static _Atomic uint8_t small;
static _Atomic long most;
static void *work(void *x) {
  for (int i = 1; i <= 500; i++) {
    atomic_fetch_add(&sum, i);
    small ^= 1;
    long seen = atomic_load(&most);
    while (seen < i && !atomic_compare_exchange_weak(&most, &seen, i)) {}
  }
  return x;
}
int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  return !(sum == 3 * 125250 && small == 0 && most == 500);
}
"""

QUEUE = """\
#include <condition_variable>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>
struct Job { virtual ~Job() {} virtual int value() { return 1; } };
struct Large : Job { int value() override { return 2; } };
static std::mutex lock;
static std::condition_variable filled;
static std::queue<std::unique_ptr<Job>> jobs;
static bool done;
static int total;
static void consume() {
  std::unique_lock<std::mutex> held(lock);
  while (true) {
    filled.wait(held, [] { return done || !jobs.empty(); });
    if (jobs.empty()) return;
    total += jobs.front()->value();
    jobs.pop();
  }
}
int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) threads.emplace_back(consume);
  for (int i = 0; i < 50; i++) {
    std::lock_guard<std::mutex> held(lock);
    jobs.push(std::make_unique<Large>());
    filled.notify_one();
  }
  { std::lock_guard<std::mutex> held(lock); done = true; }
  filled.notify_all();
  for (auto &thread : threads) thread.join();
  return total == 100 ? 0 : 1;
}
"""

FORKS = """\
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return x;
}
int main(void) {
  if (fork() == 0) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    _exit(3);
  }
  int status;
  wait(&status);
  return WEXITSTATUS(status);
}
"""

CRASH = """\
#include <pthread.h>
#include <signal.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *x) {
  pthread_mutex_lock(&lock);
  raise(SIGSEGV);
  return x;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
}
"""

EVERYTHING = """\
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t pages = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t all;
static sem_t room;
static int inside, wrong;
static void *work(void *x) {
  struct timespec soon;
  for (int i = 0; i < 5; i++) {
    sem_wait(&room);
    pthread_spin_lock(&spin);
    if (++inside > 2) wrong = 1;
    pthread_spin_unlock(&spin);
    pthread_rwlock_rdlock(&pages);
    pthread_rwlock_unlock(&pages);
    pthread_rwlock_wrlock(&pages);
    pthread_rwlock_unlock(&pages);
    pthread_spin_lock(&spin);
    inside--;
    pthread_spin_unlock(&spin);
    sem_post(&room);
    usleep(10);
  }
  clock_gettime(CLOCK_REALTIME, &soon);
  pthread_mutex_lock(&lock);
  if (pthread_cond_timedwait(&never, &lock, &soon) != ETIMEDOUT) wrong = 1;
  pthread_mutex_unlock(&lock);
  pthread_barrier_wait(&all);
  return x;
}
int main(void) {
  pthread_t threads[4];
  pthread_spin_init(&spin, 0);
  pthread_barrier_init(&all, 0, 4);
  sem_init(&room, 0, 2);
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)i);
  for (long i = 0; i < 4; i++) {
    void *result;
    if (pthread_join(threads[i], &result) || (long)result != i) wrong = 1;
  }
  return wrong;
}
"""

EARLY = """\
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static int early;
static long milliseconds;
static void *work(void *x) {
  for (int i = 0; i < 10 && !early; i++) {
    struct timespec before, after, nap;
    nap.tv_sec = milliseconds / 1000;
    nap.tv_nsec = milliseconds % 1000 * 1000000;
    clock_gettime(CLOCK_MONOTONIC, &before);
    nanosleep(&nap, 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    long passed = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    if (passed < milliseconds * 1000000) early = 1;
  }
  return x;
}
int main(int count, char **words) {
  pthread_t thread;
  milliseconds = atol(words[1]);
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
  return early;
}
"""

SLEEPER = """\
#include <pthread.h>
#include <unistd.h>
static void *work(void *x) {
  sleep(60);
  return x;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, 0);
}
"""


def need(*tools: str) -> None:
    """Skip a test where a tool is missing, and say what to install."""
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}: apt-get install {PACKAGES[tool]}")


def failures(runs: Iterable[NativeRun]) -> set[str]:
    """The signatures of the faults that runs showed."""
    return {run.fault.signature for run in runs if run.fault}


def names(run: NativeRun, kind: str) -> set[str]:
    """What a run reached, of one kind of target."""
    assert run.hits is not None, run.missing
    return {target.name for target in run.hits.targets() if target.kind == kind}
