"""Forking pytest: what has to be out of the way meanwhile."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def forking(really: bool = True) -> Iterator[None]:
    """While processes are forked that pytest is to let alone.

    pytest captures what goes to `sys.stdout` with an object, which a fork would go on filling. And
    it may make an error of Python's warning about threads; those of pytest-xdist only talk to it.
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
    """What the program prints in a hundred runs is of no use to anybody."""
    kept = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        for fd, place in zip(kept, (1, 2), strict=True):
            os.dup2(fd, place)
            os.close(fd)
        os.close(null)
