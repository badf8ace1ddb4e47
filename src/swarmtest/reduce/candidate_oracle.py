"""Questions about candidates: each is answered once, several at a time where there are workers.

Whoever reduces a test asks one question after the other, and may tell which are likely to come
(`ahead`): those are begun while there is a worker that would be idle, and ended again when it turns
out that nobody asks. Answers that are known from before (`known`) cost nothing, so a reduction that
was stopped goes on by asking the same questions again: it is deterministic.

Questions go to processes that stand ready (`answering.py`), which is many times faster than a
process for each; a program that remembers earlier tests may then answer wrongly. So whoever
believes an answer has it confirmed (`confirms`); if it is wrong, all is asked anew, each alone.
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
from swarmtest.processes.fork_pool import Asked, IsolatedRun, Pool, wait_for_any
from swarmtest.reduce.keep_criteria import Seen

Answers = MutableMapping[str, bool]
"""What is known: a hash of the test, and whether it keeps what it has to."""


class TimeIsUp(Exception):
    """The budget is spent: what was found so far is the answer."""


class Asker:
    """Whether a test is still interesting; runs it to find out.

    `runs`: (k, n), it has to be so in k of n runs. `deadline` is a monotonic time. `on_answer` is
    told after every run of a test that was asked about. `alone`: every run has its own process.
    """

    def __init__(
        self,
        look: Callable[[Any], Seen],
        holds: Callable[[Seen], bool],
        *,
        seconds: float,
        deadline: float,
        runs: tuple[int, int] = (1, 1),
        workers: int = 1,
        known: Answers | None = None,
        on_answer: Callable[[Any, bool], None] | None = None,
        alone: bool = True,
    ) -> None:
        self._look = look
        self._holds = holds
        self._seconds = seconds
        self._deadline = deadline
        self._needed = runs
        self._workers = max(workers, 1)
        self._known: Answers = {} if known is None else known
        self._on_answer = on_answer
        self._pool = None if alone else Pool(look, seconds)
        self._open: dict[str, _Question] = {}
        self._shown: dict[str, Seen] = {}
        self._sure: set[str] = set()
        """What was interesting in a process that had run nothing before."""
        self.runs = 0
        """How many tests were run."""

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
        """Begin tests that are likely to be asked about, the likeliest first."""
        if self._workers == 1:
            return
        self._settle()
        likely = ((key_of_test(test), test) for test in tests)
        first = next(likely, None)
        if first is None or first[0] in self._known:
            return  # the answer is at hand: it will tell which question comes next
        rest = ((key, test) for key, test in likely if key not in self._known)
        chosen = dict([first, *itertools.islice(rest, self._workers - 1)])
        self._drop_others(set(chosen))
        for key, test in chosen.items():
            if key not in self._open:
                self._begin(key, test)

    def close(self) -> None:
        """End what is still running."""
        self._drop_others(set())
        if self._pool is not None:
            self._pool.close()

    def _begin(self, key: str, test: Any) -> None:
        if time.monotonic() > self._deadline:
            raise TimeIsUp
        self._open[key] = _Question(self, test)

    def start(self, test: Any) -> Asked[Seen]:
        """Run a test once."""
        self.runs += 1
        if self._pool is not None:
            return self._pool.ask(test)
        return IsolatedRun(lambda: self._look(test), self._seconds, quiet=True)

    def confirms(self, test: Any) -> bool:
        """Whether an interesting test is so in a process of its own; often that is known."""
        key = key_of_test(test)
        if self._pool is None or key in self._sure:
            return True
        self._pool.close()
        self._pool = None
        self._known.pop(key, None)
        self._deadline = math.inf
        return self(test)

    def _drop_others(self, wanted: set[str]) -> None:
        for key in set(self._open) - wanted:
            self._open.pop(key).run.end()

    def _wait_for(self, key: str) -> None:
        while key in self._open:
            wait_for_any([one.run for one in self._open.values()], self._deadline)
            self._settle()
            if key in self._open and time.monotonic() > self._deadline:
                self.close()
                raise TimeIsUp

    def _settle(self) -> None:
        """Take the answers that are there; a question that needs more runs gets its next."""
        for key, question in list(self._open.items()):
            if question.run.over:
                seen = seen_in(question.run)
                holds = self._holds(seen)
                if holds:
                    self._shown[key] = seen
                    if question.run.alone:
                        self._sure.add(key)
                answer = question.after_run(holds, *self._needed)
                if answer is not None:
                    self._known[key] = answer
                    del self._open[key]

    def shown(self, test: Any) -> Seen | None:
        """What a test showed in the last run in which it was interesting, if it was run here."""
        return self._shown.get(key_of_test(test))


class _Question:
    """A test that is being run, perhaps for the second or third time."""

    def __init__(self, asker: Asker, test: Any) -> None:
        self._asker = asker
        self._test = test
        self._met = self._done = 0
        self.run = asker.start(test)

    def after_run(self, holds: bool, needed: int, most: int) -> bool | None:
        """The answer, if it is known after one more run; no more are made than that takes."""
        self._met += holds
        self._done += 1
        if self._met >= needed:
            return True
        if self._met + most - self._done < needed:
            return False
        self.run = self._asker.start(self._test)
        return None


def seen_in(run: Asked[Seen]) -> Seen:
    """What a run that is over showed; the end of its process is a fault like others."""
    outcome = run.outcome()
    return Seen(Verdict.FAILED, outcome) if isinstance(outcome, Fault) else outcome


def key_of_test(test: Any) -> str:
    """A short name for a test (JSON data), the same for equal ones."""
    text = json.dumps(test, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=12).hexdigest()
