"""Processes that wait right before the import of a file, so that it can be imported as a mutant.

The code of a module and its class bodies has already run when a test runs. So when a file that may
be mutated is about to be imported, the import hook forks a *waiting* process and goes on. Later the
waiting process is given an `ImportJob`: for each of its tasks it forks again, and that fork
continues the import where it was, with the code that the job supplies for the file. Nothing that
happened before is repeated, no file is written and no interpreter is started.

Files that the calling program had imported before cannot be imported again, so no process serves
them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType
from typing import Any, Protocol

from swarmtest.core.errors import UserError
from swarmtest.coverage.import_hook import Hook, has_source, is_test_module
from swarmtest.coverage.scope import Scope
from swarmtest.mutate.loaded_files import Tests, without_links
from swarmtest.processes import frames, limits
from swarmtest.processes.fork import Fork
from swarmtest.processes.fork_tasks import Forked, Forks, ForkTask, TaskAnswer, Tell, leave, teller

_MOST_WAITING = 16
"""How many processes wait at most; files that are imported later are served by the last of them."""

TestsOf = Callable[[Any], tuple[Tests, bool]]
"""Takes the data that a job carries; returns the tests of the imported program, and whether these
are all tests (they are not if some could not be imported)."""


class ImportChild(Protocol):
    """What a fork of a waiting process does during and after the import of the program."""

    def code(self, file: str, place: str) -> CodeType | None:
        """Return the code for a file (without symbolic links); None: the file's own code.

        `place` is the file name that the code objects have to carry.
        """

    def arrive(self, tests_of: TestsOf) -> None:
        """Run tests and report their outcomes, now that everything is imported."""

    def fail(self) -> None:
        """Report that the import did not succeed."""


class ImportJob(Protocol):
    """Work for a waiting process, to which it is sent as a pickle."""

    workers: int
    memory: int

    def tasks(self) -> Iterator[ForkTask]:
        """Yield the task of each fork."""

    def learn(self, answer: TaskAnswer) -> None:
        """Take note of the answer for an item, before the next task is started."""

    def child(self, items: list[Any], tell: Tell) -> ImportChild:
        """Return what a fork does for items of a task."""


@dataclass
class _Waiting:
    """A waiting process, and the pipes to it and from it."""

    fork: Fork
    requests: int
    answers: frames.Frames
    since: float
    seconds: float = 0.0
    """How long the rest of the import took after this process was forked."""

    def ask(self, job: ImportJob) -> Iterator[TaskAnswer]:
        """Send a job and yield its answers; once all are read, the process waits again."""
        frames.send_pickled(self.requests, job)
        while True:
            for value, _ in self.answers.receive():
                if value is None:
                    return
                yield value
            if self.answers.ended:
                raise UserError("the process that imports mutants was ended from outside")

    def end(self) -> None:
        os.close(self.requests)
        os.close(self.answers.fd)
        self.fork.reap(kill=True)


class Imports:
    """Watches the import of a program, from before its first file until its tests can run.

    `files` are the files of interest (without symbolic links), if they are known in advance.
    """

    def __init__(self, scope: Scope, files: Collection[str] = ()) -> None:
        self._hook = Hook(scope, self._loader_for)
        self._files = frozenset(files)
        self._waiting: list[_Waiting] = []
        self._server: dict[str, int] = {}
        self._child: ImportChild | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Install the import hook; import the program and call `arrived` in this block."""
        sys.meta_path.insert(0, self._hook)
        try:
            yield
        finally:
            if self._child is not None:
                with contextlib.suppress(BaseException):
                    self._child.fail()
                leave()
            with contextlib.suppress(ValueError):
                sys.meta_path.remove(self._hook)

    def arrived(self, tests_of: TestsOf) -> None:
        """Note that everything is imported; in a fork, run its tests and end the process."""
        if self._child is None:
            self._fork_for_missing_files()
        if self._child is not None:
            self._child.arrive(tests_of)
            leave()
        now = time.monotonic()
        for process in self._waiting:
            process.seconds = now - process.since

    def serves(self, file: str) -> bool:
        """Return whether a file (without symbolic links) can be imported again."""
        return file in self._server

    def seconds(self, file: str) -> float:
        """Return how long the import takes from the point where a file is imported again."""
        return self._waiting[self._server[file]].seconds

    def ask(self, job: ImportJob, file: str = "") -> Iterator[TaskAnswer]:
        """Run a job from before the import of a file; without a file, of the first one."""
        return self._waiting[self._server[file] if file else 0].ask(job)

    def end(self) -> None:
        """End all waiting processes."""
        for process in self._waiting:
            process.end()
        self._waiting.clear()
        self._server.clear()

    def _loader_for(self, spec: ModuleSpec) -> Loader | None:
        if not has_source(spec) or is_test_module(spec):
            return None
        assert spec.origin is not None
        file = os.path.realpath(spec.origin)
        if self._child is None and file not in self._server:
            if len(self._waiting) < _MOST_WAITING:
                self._fork_waiting()
            self._server[file] = len(self._waiting) - 1
        if self._child is None:
            return None
        code = self._child.code(file, spec.origin)
        return None if code is None else _CodeLoader(spec.name, spec.origin, code)

    def _fork_for_missing_files(self) -> None:
        """Fork a process from which files that only tests import can be imported."""
        missing = self._files - self._server.keys() - _loaded_files()
        if missing:
            self._fork_waiting()
            self._server |= dict.fromkeys(missing, len(self._waiting) - 1)

    def _fork_waiting(self) -> None:
        """Fork a process that waits here.

        The call returns in this process, and again in each fork of the waiting process, where
        `_child` is set.
        """
        request_end, requests = os.pipe()
        answers, answer_end = os.pipe()
        fork = Fork()
        if fork.is_child:
            self._child = _serve(request_end, teller(answer_end))
            return
        os.close(request_end)
        os.close(answer_end)
        received = frames.Frames(answers, pickle.loads)
        self._waiting.append(_Waiting(fork, requests, received, time.monotonic()))


class _CodeLoader(SourceFileLoader):
    """Loads a file with the given code instead of its own."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


def _serve(requests: int, tell: Tell) -> ImportChild:
    """Serve jobs in a waiting process until its pipe is closed; return only in its forks."""
    try:
        limits.prepare()
        jobs = frames.Frames(requests, pickle.loads)
        job: ImportJob
        while (job := jobs.next()) is not None:
            for answer in Forks(None, job.workers, job.memory).answers(job.tasks()):
                job.learn(answer)
                tell(answer)
            tell(None)
        os._exit(0)
    except Forked as fork:
        return job.child(fork.items, fork.tell)
    except BaseException:
        os._exit(1)


@contextlib.contextmanager
def noticed(codes: Mapping[str, Callable[[], CodeType]]) -> Iterator[list[str]]:
    """Load these files with other code in this block; yield the list of those that are imported.

    `codes` has the code by file, without symbolic links.
    """
    imported: list[str] = []

    def note(spec: ModuleSpec) -> Loader | None:
        assert spec.origin is not None
        file = os.path.realpath(spec.origin)
        if not has_source(spec) or is_test_module(spec) or file not in codes:
            return None
        imported.append(file)
        return _CodeLoader(spec.name, spec.origin, codes[file]())

    hook = Hook(Scope(places=tuple(codes)), note)
    sys.meta_path.insert(0, hook)
    try:
        yield imported
    finally:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(hook)


def _loaded_files() -> set[str]:
    origins = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {without_links(origin) for origin in origins if isinstance(origin, str)}
