"""Decide whether candidates are interesting: run each candidate once, several in parallel.

A reducer asks about one candidate after the other, and may announce which it is likely to ask about
next (`ahead`): idle workers start on those, and are stopped if the question never comes. Answers
from an earlier reduction (`known`) cost nothing. A reduction is deterministic, so one that was
stopped resumes by asking the same questions again.

Candidates run in a pool of processes that are kept ready (`fork_pool`), which is many times faster
than a new process for each. A program that keeps state between tests may then answer wrongly, so
the caller has the final answer confirmed in a fresh process (`confirms`); if that fails, the whole
reduction is repeated with a process per candidate (`alone`).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

from swarmtest.core.result import Fault, Verdict
from swarmtest.processes.fork_pool import ForkPool, IsolatedRun, PendingAnswer, wait_for_any
from swarmtest.reduce.keep_criteria import RunSummary

Answers = MutableMapping[str, bool]
"""Answers by the hash of the test: whether that test meets the criterion."""


class TimeIsUp(Exception):
    """Raised when the budget is spent; the smallest test so far is then the result."""


class CandidateOracle:
    """An oracle for candidates: runs a test and answers whether it is still interesting.

    `observe` runs a test in another process and `holds` judges what was seen. With `runs` = (k, n)
    the judgement must be positive in k of n runs. `deadline` is a monotonic time. `on_answer` is
    called with the test and the answer after every question. With `alone` every run has its own
    process.
    """

    def __init__(
        self,
        observe: Callable[[Any], RunSummary],
        holds: Callable[[RunSummary], bool],
        *,
        seconds: float,
        deadline: float,
        runs: tuple[int, int] = (1, 1),
        workers: int = 1,
        known: Answers | None = None,
        on_answer: Callable[[Any, bool], None] | None = None,
        alone: bool = True,
    ) -> None:
        self._observe = observe
        self._holds = holds
        self._seconds = seconds
        self._deadline = deadline
        self._needed = runs
        self._workers = max(workers, 1)
        self._known: Answers = {} if known is None else known
        self._on_answer = on_answer
        self._pool = None if alone else ForkPool(observe, seconds)
        self._open: dict[str, _Question] = {}
        self._shown: dict[str, RunSummary] = {}
        self._confirmed: set[str] = set()
        """The tests that were interesting in a process that had run nothing before."""
        self.runs = 0
        """How many runs were started."""

    def __call__(self, test: Any) -> bool:
        key = key_of_test(test)
        if key not in self._known:
            if key not in self._open:
                self._drop_others({key})
                self._begin(key, test)
            self._wait_for(key)
        answer = self._known[key]
        if self._on_answer is not None:
            self._on_answer(test, answer)
        return answer

    def ahead(self, tests: Iterable[Any]) -> None:
        """Start running tests that are likely to be asked about next, the likeliest first."""
        if self._workers == 1:
            return
        self._settle()
        likely = ((key_of_test(test), test) for test in tests)
        first = next(likely, None)
        if first is None or first[0] in self._known:
            return  # the next question is already answered, and what follows depends on it
        rest = ((key, test) for key, test in likely if key not in self._known)
        chosen = dict([first, *itertools.islice(rest, self._workers - 1)])
        self._drop_others(set(chosen))
        for key, test in chosen.items():
            if key not in self._open:
                self._begin(key, test)

    def close(self) -> None:
        """Stop all runs and the pool of processes."""
        self._drop_others(set())
        if self._pool is not None:
            self._pool.close()

    def _begin(self, key: str, test: Any) -> None:
        if time.monotonic() > self._deadline:
            raise TimeIsUp
        self._open[key] = _Question(self, test)

    def start(self, test: Any) -> PendingAnswer[RunSummary]:
        """Start one run of a test."""
        self.runs += 1
        if self._pool is not None:
            return self._pool.ask(test)
        return IsolatedRun(lambda: self._observe(test), self._seconds, quiet=True)

    def confirms(self, test: Any) -> bool:
        """Return whether a test is interesting in a fresh process too; run it only if needed."""
        key = key_of_test(test)
        if self._pool is None or key in self._confirmed:
            return True
        self._pool.close()
        self._pool = None
        self._known.pop(key, None)
        # The confirmation is one run, and it has to take place even when the budget is spent.
        self._deadline = math.inf
        return self(test)

    def _drop_others(self, wanted: set[str]) -> None:
        for key in set(self._open) - wanted:
            self._open.pop(key).run.end()

    def _wait_for(self, key: str) -> None:
        while key in self._open:
            wait_for_any([question.run for question in self._open.values()], self._deadline)
            self._settle()
            if key in self._open and time.monotonic() > self._deadline:
                self.close()
                raise TimeIsUp

    def _settle(self) -> None:
        """Collect the runs that are over; start the next run of a question that needs more."""
        for key, question in list(self._open.items()):
            if question.run.over:
                seen = summary_of(question.run)
                holds = self._holds(seen)
                if holds:
                    self._shown[key] = seen
                    if question.run.alone:
                        self._confirmed.add(key)
                answer = question.after_run(holds, *self._needed)
                if answer is not None:
                    self._known[key] = answer
                    del self._open[key]

    def shown(self, test: Any) -> RunSummary | None:
        """Return what a test showed in its last interesting run; None if there was none here."""
        return self._shown.get(key_of_test(test))


class _Question:
    """A test that is being run, perhaps repeatedly, until the answer is known."""

    def __init__(self, asker: CandidateOracle, test: Any) -> None:
        self._asker = asker
        self._test = test
        self._met = self._done = 0
        self.run = asker.start(test)

    def after_run(self, holds: bool, needed: int, most: int) -> bool | None:
        """Count a run; return the answer, or None after starting another run that it needs."""
        self._met += holds
        self._done += 1
        if self._met >= needed:
            return True
        if self._met + most - self._done < needed:
            return False
        self.run = self._asker.start(self._test)
        return None


def summary_of(run: PendingAnswer[RunSummary]) -> RunSummary:
    """Return what a finished run showed; a run that ended its process shows that as a fault."""
    outcome = run.outcome()
    return RunSummary(Verdict.FAILED, outcome) if isinstance(outcome, Fault) else outcome


def key_of_test(test: Any) -> str:
    """Return a hash of a test (JSON data); equal tests have equal hashes."""
    text = json.dumps(test, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=12).hexdigest()
