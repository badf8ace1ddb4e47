"""Calling the function of a run: whatever it does, the run comes to its end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from swarmtest.faults import fault_of_exception
from swarmtest.result import Fault
from swarmtest.threads.tasks import Unwound


class _Ends(Protocol):
    interrupted: bool
    """Whether it is us who interrupted the main thread, because its time was up."""

    def fail(self, fault: Fault) -> None: ...
    def end(self) -> None: ...
    def outlive(self) -> None: ...


def call_to_the_end(function: Callable[[], object], run: _Ends) -> None:
    """Call a function, and let the threads that it started end; a user's interrupt goes on."""
    pid = os.getpid()
    by_user: BaseException | None = None
    try:
        function()
    except Unwound:
        pass
    except SystemExit as error:
        if error.code:
            run.fail(fault_of_exception(error, "exit"))
    except Exception as error:
        run.fail(fault_of_exception(error))
    except BaseException as error:
        by_user = None if run.interrupted else error
        run.end()
    if os.getpid() != pid:
        _leave_fork()
    while True:
        try:
            run.outlive()
            break
        except KeyboardInterrupt as error:
            by_user = by_user or (None if run.interrupted else error)
            run.end()
    if by_user is not None:
        raise by_user


def _leave_fork() -> None:
    """End a child process that the program forked and that would go on as if it were us."""
    print(
        "swarmtest: a process that the program forked came back from the run; it ends here "
        "(a child should end by os._exit)",
        file=sys.stderr,
    )
    sys.stderr.flush()
    os._exit(1)
