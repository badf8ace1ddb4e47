"""Processes that stand right before the import of a file, so that it can be imported as a mutant.

What a module and its classes execute has happened when a test is run. So when a file that may be
mutated is about to be imported, the import hook forks a *waiting* process and goes on. Later, the
waiting one is given a `Job`: for each of its tasks it forks again, and this fork goes on where the
import was, with the code that the job hands out for the file. Nothing that came before is done
again, no file is written and no interpreter started.

What is imported before (by the calling program) cannot be imported anew, and is served by nobody.
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
from swarmtest.processes.fork_tasks import Answer, Forked, Forks, Task, Tell, leave, teller

_MOST = 16
"""Waiting processes; files that are imported after so many are served by the last of them."""

TestsOf = Callable[[Any], tuple[Tests, bool]]
"""From what a job carries to the tests of the program that was imported, and whether they are all:
not if some could not be imported."""


class Child(Protocol):
    """What a fork of a waiting process does while the program is imported, and then."""

    def code(self, file: str, place: str) -> CodeType | None:
        """The code of a file (without links), which code objects call `place`; None: its own."""

    def arrive(self, tests_of: TestsOf) -> None:
        """All is imported: run tests, and tell."""

    def fail(self) -> None:
        """It did not come to that: tell."""


class Job(Protocol):
    """What a waiting process is asked to do; it travels to it."""

    workers: int
    memory: int

    def tasks(self) -> Iterator[Task]:
        """What each fork is to do."""

    def learn(self, answer: Answer) -> None:
        """Note what came of an item, before the next task is taken."""

    def child(self, items: list[Any], tell: Tell) -> Child:
        """What a fork does for items of a task."""


@dataclass
class _Waiting:
    fork: Fork
    requests: int
    answers: frames.Frames
    since: float
    seconds: float = 0.0
    """How long it took from there until all was imported."""

    def ask(self, job: Job) -> Iterator[Answer]:
        """What comes of a job; the process waits again when all was taken."""
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
        self.fork.bury(kill=True)


class Imports:
    """Watches the import of a program, from before its first file to when its tests can be run.

    `files`: those that are of interest (without links), if that is known before.
    """

    def __init__(self, scope: Scope, files: Collection[str] = ()) -> None:
        self._hook = Hook(scope, self._loader_for)
        self._files = frozenset(files)
        self._waiting: list[_Waiting] = []
        self._server: dict[str, int] = {}
        self._child: Child | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Import the program in this block, and call `arrived` in it."""
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
        """All is imported; a fork does what it was made for and is not heard of again."""
        if self._child is None:
            self._stand_by_for_the_rest()
        if self._child is not None:
            self._child.arrive(tests_of)
            leave()
        now = time.monotonic()
        for one in self._waiting:
            one.seconds = now - one.since

    def serves(self, file: str) -> bool:
        """Whether a file (without links) can be imported anew."""
        return file in self._server

    def seconds(self, file: str) -> float:
        """How long it took from where a file is imported anew until all was imported."""
        return self._waiting[self._server[file]].seconds

    def ask(self, job: Job, file: str = "") -> Iterator[Answer]:
        """Let a job be done from before a file was imported; without one: from the very first."""
        return self._waiting[self._server[file] if file else 0].ask(job)

    def end(self) -> None:
        """Nothing more will be asked."""
        for one in self._waiting:
            one.end()
        self._waiting.clear()
        self._server.clear()

    def _loader_for(self, spec: ModuleSpec) -> Loader | None:
        if not has_source(spec) or is_test_module(spec):
            return None
        assert spec.origin is not None
        file = os.path.realpath(spec.origin)
        if self._child is None and file not in self._server:
            if len(self._waiting) < _MOST:
                self._stand_by()
            self._server[file] = len(self._waiting) - 1
        if self._child is None:
            return None
        code = self._child.code(file, spec.origin)
        return None if code is None else _Given(spec.name, spec.origin, code)

    def _stand_by_for_the_rest(self) -> None:
        """Files that only tests import are imported anew from here."""
        missing = self._files - self._server.keys() - _loaded_files()
        if missing:
            self._stand_by()
            self._server |= dict.fromkeys(missing, len(self._waiting) - 1)

    def _stand_by(self) -> None:
        """Fork a process that waits here; in its forks, there is a child afterwards."""
        told, requests = os.pipe()
        answers, tells = os.pipe()
        fork = Fork()
        if fork.is_child:
            self._child = _serve(told, teller(tells))
            return
        os.close(told)
        os.close(tells)
        arriving = frames.Frames(answers, pickle.loads)
        self._waiting.append(_Waiting(fork, requests, arriving, time.monotonic()))


class _Given(SourceFileLoader):
    """Loads a file with code that was made for it."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


def _serve(requests: int, tell: Tell) -> Child:
    """The life of a waiting process; it returns in its forks only."""
    try:
        limits.prepare()
        jobs = frames.Frames(requests, pickle.loads)
        job: Job
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
    """The files among these (without links) that are imported in this block, with other code."""
    found: list[str] = []

    def note(spec: ModuleSpec) -> Loader | None:
        assert spec.origin is not None
        file = os.path.realpath(spec.origin)
        if not has_source(spec) or is_test_module(spec) or file not in codes:
            return None
        found.append(file)
        return _Given(spec.name, spec.origin, codes[file]())

    hook = Hook(Scope(places=tuple(codes)), note)
    sys.meta_path.insert(0, hook)
    try:
        yield found
    finally:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(hook)


def _loaded_files() -> set[str]:
    origins = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return {without_links(origin) for origin in origins if isinstance(origin, str)}
