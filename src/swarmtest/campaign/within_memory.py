"""A limit of memory for tests that run in a process each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swarmtest.campaign.child import limit_memory
from swarmtest.result import Result
from swarmtest.subjects.subject import Subject


class WithinMemory:
    """A subject whose tests may hold so much memory; they run in processes of their own."""

    def __init__(self, subject: Subject, memory: int) -> None:
        vars(self).update(_subject=subject, _memory=memory)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._subject, name)
        return self._limited(found) if name in ("replay", "told_again") else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._subject, name, value)

    def _limited(self, run: Callable[[Any], Result]) -> Callable[[Any], Result]:
        def limited(test: Any) -> Result:
            if self._memory:
                limit_memory(self._memory)
            return run(test)

        return limited
