"""A native program under test: one input in, one `Run` out, with what it reached."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from swarmtest.errors import UserError, did_you_mean
from swarmtest.instrument.native.fast import has_runtime
from swarmtest.instrument.native.gcov import has_counters
from swarmtest.instrument.native.places import Lines
from swarmtest.instrument.native.run import Run
from swarmtest.instrument.native.session import Session, Settings
from swarmtest.targets import Catalogue

COVERAGE = ("auto", "fast", "gcov", "hits", "lcov", "none")


class Program:
    """Runs a program on one input after another, and says what each reached.

    `command`: its words; ``{test}`` in a word stands for a file that holds the input (named with
    `suffix`); without it the input comes on standard input.
    `coverage`: how hits are collected; ``auto`` looks at how the program was built.
    `sources`: the files, directories or patterns whose lines are targets; default: all but the
    system's headers.
    `fork_server`: start the program once and fork it for every test.
    `persistent`: with a fork server, tests that one process runs in its `swarmtest_next` loop.
    `timeout`: seconds of wall time for a test; 0: no limit. `memory`: bytes of address space.
    `env`: variables set for the program. `cwd`: the directory it runs in.
    `objects`: where gcov's `.gcno` files are, if the build tree was moved.

    It can be used in a forked process, which then has a fork server and memory of its own; not in
    two threads at once.

    >>> with Program(["cat"], coverage="none") as cat:
    ...     cat.run(b"hello").stdout
    b'hello'
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        coverage: str = "auto",
        sources: Iterable[str | Path] | None = None,
        fork_server: bool = False,
        persistent: int = 0,
        timeout: float = 10.0,
        memory: int = 0,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        suffix: str = "",
        objects: str | Path | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise UserError("native programs can be tested on Linux only")
        if coverage not in COVERAGE:
            raise UserError(f"no such coverage: {coverage!r}{did_you_mean(coverage, COVERAGE)}")
        executable, *words = map(str, command) if command else [""]
        program = find_program(executable, str(cwd or ""))
        self._settings = Settings(
            (program, *words),
            _detect(program) if coverage == "auto" else coverage,
            fork_server or persistent > 0,
            persistent,
            timeout,
            memory,
            env,
            str(cwd) if cwd else None,
            suffix,
            Path(objects) if objects else None,
        )
        self.catalogue = Catalogue()
        """All targets: those of code that was never reached too, from the first run on."""
        self._lines = Lines(self.catalogue, sources)
        self._directory = Path(tempfile.mkdtemp(prefix="swarmtest-"))
        self._remove = weakref.finalize(self, _remove, self._directory, os.getpid())
        self._session: Session | None = None
        self._owner = 0

    @property
    def coverage(self) -> str:
        """How hits are collected: what ``auto`` found."""
        return self._settings.coverage

    def run(self, data: bytes, arguments: Sequence[str] = ()) -> Run:
        """Run the program on one input, with more words at the end of its command."""
        if not self._remove.alive:
            raise UserError("this Program was closed: run it inside its `with` block")
        ended, collected = self._own_session().run(data, arguments)
        return Run(
            None if ended.signal else os.WEXITSTATUS(ended.status),
            ended.signal,
            ended.timed_out,
            ended.stdout,
            ended.stderr,
            ended.cpu_seconds,
            ended.wall_seconds,
            collected.hits,
            collected.missing,
        )

    def _own_session(self) -> Session:
        """This process's session: one from before a fork is the parent's."""
        if self._session is not None and self._owner != os.getpid():
            self._session.abandon()
            self._session = None
        if self._session is None:
            self._owner = os.getpid()
            place = self._directory / str(self._owner)
            self._session = Session(self._settings, self._lines, place)
        return self._session

    def close(self) -> None:
        """End what this process started for the program, and remove its files."""
        if self._session is not None and self._owner == os.getpid():
            self._session.close()
            self._session = None
        self._remove()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


def find_program(executable: str, directory: str) -> str:
    """The path of an executable, found as a shell would, in the directory it will run in.

    >>> find_program("sh", "") == shutil.which("sh")
    True
    """
    if os.sep in executable:
        path = os.path.join(os.path.abspath(directory), executable)
        found = path if os.access(path, os.X_OK) and os.path.isfile(path) else None
    else:
        found = shutil.which(executable)
    if found is None:
        raise UserError(f"no program {executable!r}: command has to begin with an executable")
    return os.path.abspath(found)


def _detect(program: str) -> str:
    if has_runtime(program):
        return "fast"
    if has_counters(program):
        return "gcov"
    raise UserError(
        f"{program} was built without coverage: build it with `swarmtest cc` or --coverage, or "
        "say coverage='hits', 'lcov' or 'none'"
    )
