"""A change of the whole process that cannot stay behind.

Some things belong to a process and not to an object: its directory, its environment, functions of
modules that are replaced for a while. If every user saves what it found and puts that back, then
two users who leave in another order than they came leave the change of the first one behind.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack


class HeldChange:
    """A change that is made for the first who holds it, and undone when nobody holds it.

    The function that makes it gets an `ExitStack`, and registers there how to undo each step.

    >>> seen = []
    >>> def make(undo):
    ...     seen.append("made")
    ...     undo.callback(seen.append, "undone")
    >>> class Holder: pass
    >>> change, one, two = HeldChange(make), Holder(), Holder()
    >>> let_go_of_one, let_go_of_two = change.hold(one), change.hold(two)
    >>> let_go_of_one(); let_go_of_one(); seen
    ['made']
    >>> let_go_of_two(); seen
    ['made', 'undone']
    """

    def __init__(self, make: Callable[[ExitStack], object]) -> None:
        self._make = make
        self._undo = ExitStack()
        self._holders: set[object] = set()

    def hold(self, holder: object) -> Callable[[], object]:
        """Make the change unless it is made, and return a function that lets go of it.

        A holder that is forgotten without letting go lets go when it is collected. If making it
        fails, or is interrupted, what was done of it is undone.
        """
        token = object()
        let_go = weakref.finalize(holder, self._let_go, token)
        let_go.atexit = False
        try:
            first = not self._holders
            self._holders.add(token)
            if first:
                self._make(self._undo)
        except BaseException:
            let_go()
            raise
        return let_go

    def _let_go(self, token: object) -> None:
        self._holders.discard(token)
        if not self._holders:
            self._undo.close()
