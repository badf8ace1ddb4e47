"""A connection to a Dask scheduler: it sends orders, receives answers, and may break at any time.

The client has a thread of its own. What it learns is put where the campaign's thread looks for it,
so that the campaign never waits for a scheduler that may be gone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import copy
import logging
import queue
import time
import warnings
from collections.abc import Callable
from typing import Any

from swarmtest.campaign.executors.dask.packages import version_mismatch
from swarmtest.core.errors import UserError

_WATCH_SECONDS = 1.0
_EXAMINE_SECONDS = 10.0
_LAST_WORDS = 1.5
# A worker that cannot unpickle a task ends, even if it also works for others. So tasks name only
# what is in every Python, and look for swarmtest when they run.
_THERE = "__import__('swarmtest.campaign.executors.dask.worker_side', fromlist=['run_batch'])"
_RUN = f"{_THERE}.run_batch(order, bundle)"
_STOP = f"{_THERE}.stop_campaign({{token!r}})"

Answer = dict[str, Any] | BaseException


class Unreachable(Exception):
    """There is no answer, or not that of a Dask scheduler."""


class SchedulerConnection:
    """One connection to a scheduler, good until it is `lost`."""

    def __init__(self, make_client: Callable[[], Any], token: str, bundle: Any) -> None:
        self._token = token
        self._answers: queue.SimpleQueue[tuple[int, Answer]] = queue.SimpleQueue()
        self._futures: dict[int, Any] = {}
        self._attempts = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.threads: dict[str, int] = {}
        """The number of tasks that each worker runs at the same time."""
        self.unfit: dict[str, str] = {}
        """Workers that have another Python or swarmtest, and what is wrong with each."""
        self._examined: set[str] = set()
        self._broken = False
        self._client = _connect(make_client)
        try:
            self._client.sync(self._examine_workers, bundle, callback_timeout=_EXAMINE_SECONDS)
            key = f"swarmtest-subject-{token}-{time.monotonic_ns()}"
            fit = [*self.threads.keys() - self.unfit.keys()] if self.unfit else None
            self._bundle = self._client.submit(copy.copy, bundle, key=key, workers=fit)
            self._client.loop.add_callback(self._watch_workers, bundle)
        except Exception as error:  # gone again
            self.close()
            raise Unreachable(_in_short(error)) from None

    @property
    def lost(self) -> bool:
        """Whether nothing more will arrive."""
        return self._broken or self._client.status != "running"

    def abandon(self) -> None:
        """Count the connection as lost, though nobody says so."""
        self._broken = True

    def send(self, number: int, order: dict[str, Any], workers: list[str] | None) -> None:
        """Send an order to the scheduler; `workers`: only these may run it."""
        self._attempts += 1
        try:
            future = self._client.submit(
                eval,
                _RUN,
                {"order": order, "bundle": self._bundle},
                # One group for all: a scheduler keeps the tasks of a large group to itself until
                # a worker is free, so that a slow one does not sit on them.
                key=(f"swarmtest-batch-{self._token}", self._attempts),
                workers=workers,
                pure=False,
            )
            self._futures[self._attempts] = future
            self._client.loop.add_callback(self._await, self._attempts, number, future)
        except Exception:  # the client closes itself when its scheduler is gone
            self._broken = True

    def answers(self, timeout: float) -> list[tuple[int, Answer]]:
        """Return the numbers and answers of orders that end within `timeout` seconds."""
        answers: list[tuple[int, Answer]] = []
        with contextlib.suppress(queue.Empty):
            answers.append(self._answers.get(timeout=timeout))
            while True:
                answers.append(self._answers.get_nowait())
        return answers

    def stop(self) -> None:
        """Tell the workers to finish the tests at hand and run no more."""
        if not self.lost:
            self._client.loop.add_callback(self._tell_to_stop)

    def close(self) -> None:
        """Disconnect; results that were not fetched are dropped."""
        for last in (self._tell_to_stop, self._end_tasks):
            with contextlib.suppress(Exception):
                self._client.sync(last, callback_timeout=_LAST_WORDS)
        for future in self._futures.values():
            with contextlib.suppress(Exception):
                future.release()
        self._futures.clear()
        self._broken = True
        with contextlib.suppress(Exception):
            self._client.close(timeout=_LAST_WORDS)

    async def _end_tasks(self) -> None:
        """Cancel what still waits: an event loop that ends complains about it."""
        waiting = [task for task in self._tasks if not task.done()]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _track_task(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _await(self, attempt: int, number: int, future: Any) -> None:
        self._track_task()
        try:
            answer: Answer = await future
        except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
            self._broken = True  # a scheduler that forgot the task has forgotten the others too
            answer = error
        except Exception as error:
            # If the task itself has not failed, its result did not arrive: the connection was cut.
            self._broken = self._broken or future.status != "error"
            answer = error
        self._futures.pop(attempt, None)
        self._answers.put((number, answer))

    async def _watch_workers(self, bundle: dict[str, Any]) -> None:
        self._track_task()
        while not self.lost:
            await asyncio.sleep(_WATCH_SECONDS)
            with contextlib.suppress(Exception):
                await self._examine_workers(bundle)

    async def _examine_workers(self, bundle: dict[str, Any]) -> None:
        """Look which workers there are, and whether new ones have the campaign's versions."""
        threads = dict(await self._client.nthreads())
        if threads.keys() - self._examined:
            versions = await self._client.get_versions(packages=["swarmtest"])
            for worker, about in versions["workers"].items():
                self._examined.add(worker)
                wrong = version_mismatch(bundle, about["packages"])
                if wrong:
                    self.unfit[worker] = f"worker {worker} {wrong}"
        self.threads = threads

    async def _tell_to_stop(self) -> None:
        if self.lost:
            return
        with contextlib.suppress(Exception):
            fit = [*self.threads.keys() - self.unfit.keys()]
            order = _STOP.format(token=self._token)
            await self._client.run(eval, order, workers=fit, on_error="ignore")


def _connect(make_client: Callable[[], Any]) -> Any:
    _silence()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared where they matter
            return make_client()
    except UserError:
        raise
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        raise Unreachable(_in_short(error)) from None


def _in_short(error: BaseException) -> str:
    """Return the reason in one line: the message of the operating system, if there is one."""
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    from_system = [cause for cause in chain if getattr(cause, "errno", None)]
    lines = str(from_system[-1] if from_system else error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _silence() -> None:
    """Silence Dask's log, which would appear between our lines; we report what matters."""
    import distributed  # noqa: F401 - it sets its loggers' levels when it is first imported

    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
