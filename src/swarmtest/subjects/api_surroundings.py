"""What a derived test runs in: an empty directory of its own, and no network."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack

from swarmtest.processes.held_change import HeldChange
from swarmtest.processes.scratch import Scratch
from swarmtest.subjects.no_network import NoNetwork

_VARIABLES = ("HOME", "TMPDIR")


class Surroundings:
    """An empty directory in which a test runs, with HOME and TMPDIR in it.

    A class that is called with random texts may take them for names of files. The process is as it
    was once nobody is in such surroundings, whatever the order in which they came and went.

    >>> before = os.getcwd(), os.environ.get("HOME")
    >>> one, two = Surroundings(), Surroundings()
    >>> _ = one.__enter__(), two.__enter__()
    >>> os.getcwd() == before[0], os.listdir()
    (False, [])
    >>> one.__exit__(); two.__exit__()
    >>> (os.getcwd(), os.environ.get("HOME")) == before
    True
    """

    _let_go: Callable[[], object] | None = None

    def __init__(self, network: bool = False) -> None:
        """Create it; the network stays off unless `network` is true."""
        self._no_network = None if network else NoNetwork()

    def __enter__(self) -> Surroundings:
        if self._let_go is None:
            self._let_go = _CHANGE.hold(self)
        try:
            place = _scratch().temporary
            os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = place
            os.chdir(place)
            if self._no_network is not None:
                self._no_network.__enter__()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._no_network is not None:
            self._no_network.__exit__()
        let_go, self._let_go = self._let_go, None
        if let_go is not None:
            let_go()


_scratches: list[Scratch] = []


def _scratch() -> Scratch:
    if not _scratches:
        _scratches.append(Scratch())
    return _scratches[0]


def _remember(undo: ExitStack) -> None:
    undo.callback(_return_to, os.getcwd())
    undo.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
    for name in _VARIABLES:
        undo.callback(_set_variable, name, os.environ.get(name))
    # Modules that are imported later are still found.
    sys.path[:] = [os.path.abspath(entry) for entry in sys.path]


_CHANGE = HeldChange(_remember)


def _return_to(directory: str) -> None:
    with contextlib.suppress(OSError):
        os.chdir(directory)


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
