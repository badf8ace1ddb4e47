"""Run the methods of a machine with `async def` in an event loop, one loop for each test.

If an action, an invariant, `start` or `stop` is a coroutine function, all of them run inside the
loop: a plain method may then create tasks too. The methods of the class are replaced when the class
is created, so that campaigns, replays and printed tests call them like those of any machine.
Called from inside a running loop, as in ``await super().start()`` or in a printed test, a method
is what it was written as.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from swarmtest.core.errors import UserError

INVARIANT = "_swarmtest_invariant"
"""The attribute of an invariant."""
IN_LOOP = "_swarmtest_in_loop"
"""The attribute of a method that was replaced; its value is whether it has to be awaited."""


def is_awaited(method: Any) -> bool:
    """Return whether a call of a method of a machine has to be awaited inside of a loop.

    >>> async def switch(self): pass
    >>> is_awaited(in_loop(switch)), is_awaited(in_loop(lambda self: None))
    (True, False)
    """
    return bool(getattr(method, IN_LOOP, False))


def in_loop(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that runs in the loop of its machine's test until it is done."""
    generates = inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method)
    if hasattr(method, IN_LOOP) or generates:
        return method
    awaited = inspect.iscoroutinefunction(method)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        import asyncio.events  # only machines with async methods pay for the import

        running = asyncio.events._get_running_loop()
        if running is not None and self._is_tested and not runs_in(self._loop, running):
            raise UserError(
                f"{type(self).__name__} has async methods, which need an event loop of their own, "
                "but one runs here already: use another process, as with workers=2"
            )
        if running is not None:
            return method(self, *args, **kwargs)
        if self._loop is None:
            self._loop = TestLoop()
        result = self._loop.run(method, (self, *args), kwargs, awaited)
        if not hasattr(method, INVARIANT):  # nothing is violated if a task raised something
            self._loop.raise_error()
        return result

    setattr(call, IN_LOOP, awaited)
    return call


def runs_in(test_loop: TestLoop | None, running: Any) -> bool:
    """Return whether the loop that runs is the one of a test."""
    return test_loop is not None and test_loop.loop is running


class TestLoop:
    """The event loop of one test. What a task in the background raises ends the test, too."""

    __test__ = False  # pytest does not take it for a test

    def __init__(self) -> None:
        import asyncio

        self._runner = asyncio.Runner()
        self.loop = self._runner.get_loop()
        """The event loop itself."""
        self.loop.set_exception_handler(self._note)
        self._errors: list[BaseException] = []

    def _note(self, _loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self._errors.append(error)

    def run(self, method: Callable[..., Any], args: Any, kwargs: Any, awaited: bool) -> Any:
        """Run a method to its end."""

        async def main() -> Any:
            result = method(*args, **kwargs)
            return await result if awaited else result

        return self._runner.run(main())

    def raise_error(self) -> None:
        """Raise what a task raised that nobody awaits."""
        if self._errors:
            raise self._errors.pop(0)

    def close(self) -> None:
        """Cancel the tasks that are left, and close the loop."""
        # What a task raises because it is cancelled is not the program's fault.
        errors, self._errors = self._errors, []
        self._runner.close()
        self._errors.clear()
        if errors:
            raise errors[0]
