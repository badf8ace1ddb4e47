"""Configurations that give only invalid tests: found early, retired, reported.

A trial keeps its number, its configuration and its seed whatever happens to others: retiring only
means that later trials with that configuration are passed over, and the budget goes to the next
numbers. What is dropped would have given no valid test, and invalid tests hit nothing, so no count
of hits changes; see docs/commands.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from swarmtest.result import Verdict
from swarmtest.space import Configuration, Space

PATIENCE = 8
"""Invalid tests, and no valid one, after which a configuration is retired. One that is valid half
of the time is retired by mistake once in 256 times."""
HOPELESS = 100
"""Invalid tests, and no valid one at all, after which a campaign ends."""
_SHOWN = 3


class Retirement:
    """Watches rows; knows which configurations are retired.

    `has_valid_test` looks a configuration up among all tests so far: it is asked once for each that
    is about to be retired, so that valid tests need not be remembered here.
    """

    def __init__(self, space: Space, has_valid_test: Callable[[bytes], bool]) -> None:
        self._space = space
        self._has_valid_test = has_valid_test
        self._invalid: Counter[bytes] = Counter()
        self._useful: set[bytes] = set()
        self._reasons: Counter[str] = Counter()
        self._valid = 0
        self.retired: dict[bytes, str] = {}
        """Configurations that are not run any more, with why their tests were invalid."""

    def watch(self, rows: Sequence[Any]) -> None:
        """Take rows in, in any order."""
        if not self._invalid and not any(row[5] == Verdict.INVALID for row in rows):
            self._valid += len(rows)
            return
        for row in rows:
            configuration, verdict, reason = row[1], row[5], row[13]
            if verdict != Verdict.INVALID:
                self._valid += 1
                if configuration in self._invalid:
                    self._useful.add(configuration)
                continue
            self._reasons[reason] += 1
            self._invalid[configuration] += 1
            if self._invalid[configuration] >= PATIENCE and self._is_useless(configuration):
                self.retired.setdefault(configuration, reason)

    def _is_useless(self, configuration: bytes) -> bool:
        if configuration in self.retired:
            return True
        if configuration not in self._useful and self._has_valid_test(configuration):
            self._useful.add(configuration)
        return configuration not in self._useful

    @property
    def hopeless(self) -> str:
        """Why no test can be expected to be valid; empty if there is hope."""
        invalid = self._reasons.total()
        if self._valid or invalid < HOPELESS:
            return ""
        return f"none of {invalid:,} tests was valid: {self._reasons.most_common(1)[0][0]}"

    def notes(self) -> list[str]:
        """What a user should know, one line each."""
        found = []
        invalid = self._reasons.total()
        if invalid:
            reasons = [f"{reason} ({n:,})" for reason, n in self._reasons.most_common(_SHOWN)]
            more = ["…"] if len(self._reasons) > _SHOWN else []
            tests = invalid + self._valid
            found.append(
                f"{invalid:,} of {tests:,} tests were invalid: {'; '.join(reasons + more)}"
            )
        for configuration, reason in list(self.retired.items())[:_SHOWN]:
            text = str(Configuration.from_bytes(self._space, configuration))
            found.append(f"retired, for it gives only invalid tests: '{text}' ({reason})")
        unsaid = len(self.retired) - _SHOWN
        if unsaid > 0:
            found.append(f"and {unsaid:,} more retired")
        return found
