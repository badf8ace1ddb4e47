"""Context managers for forking pytest's process."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def forking(really: bool = True) -> Iterator[None]:
    """Prepare pytest's process for forking, unless `really` is False.

    pytest captures `sys.stdout` with an object, which a fork would go on filling; so output goes to
    the file descriptors meanwhile. pytest may also turn Python's warning about threads into an
    error; the threads of pytest-xdist only communicate with its controller.
    """
    if not really:
        yield
        return
    with contextlib.ExitStack() as stack:
        out, err = (
            stack.enter_context(open(fd, "w", closefd=False, errors="replace")) for fd in (1, 2)
        )
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        yield


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard the output of the program, which may be run a hundred times."""
    saved = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        for copy, fd in zip(saved, (1, 2), strict=True):
            os.dup2(copy, fd)
            os.close(copy)
        os.close(null)
