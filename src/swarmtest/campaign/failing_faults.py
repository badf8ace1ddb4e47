"""Which faults make a command fail: all of them, only new ones, or none.

A fault is new if the store had not seen it for this subject before. One that was fixed and is back
again counts as new: it has to be fixed once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from swarmtest.store.fault_lives import FIXED, FaultLife, fault_lives
from swarmtest.store.interface import Store

NEW, ANY, NEVER = "new", "any", "never"
FAIL_ON = (NEW, ANY, NEVER)


@dataclass(frozen=True)
class RunLives:
    """The lives of a subject's faults before and after a command that ran tests.

    >>> lives = RunLives({}, {})
    >>> lives.failing("new", ["4ee18053"]), lives.failing("never", ["4ee18053"])
    (['4ee18053'], [])
    """

    before: Mapping[str, FaultLife]
    after: Mapping[str, FaultLife]

    @classmethod
    def until_now(cls, before: Mapping[str, FaultLife], store: Store, subject: str) -> RunLives:
        """Return the lives with those that the store has now."""
        return cls(before, fault_lives(store, subject))

    def is_new(self, fault: str) -> bool:
        """Return whether a fault that was seen is new, or back again.

        A fault that stays fixed was seen in an older version than the one that fixed it.
        """
        before, after = self.before.get(fault), self.after.get(fault)
        if before is None:
            return True
        return before.state == FIXED and (after is None or after.state != FIXED)

    def failing(
        self, fail_on: str, faults: Iterable[str], forgiven: Collection[str] = ()
    ) -> list[str]:
        """Return the faults because of which the command fails.

        `forgiven` are faults that the user has asked to avoid.
        """
        if fail_on == NEVER:
            return []
        found = [fault for fault in faults if fault not in forgiven]
        return found if fail_on == ANY else [fault for fault in found if self.is_new(fault)]
