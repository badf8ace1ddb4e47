"""The faults of a campaign as a list that a notebook shows as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swarmtest.core.display import Displayed, ShownTable
from swarmtest.store.records import FaultRecord


class FaultList(list[FaultRecord], Displayed):
    """A list of faults, which can be printed, shown in a notebook, and made a data frame.

    >>> fault = FaultRecord("f6f54754", "exception", "KeyError: 'a'", "", 3, 7, 5, None, 12)
    >>> print(FaultList([fault]))
    1 fault
    <BLANKLINE>
    fault          tests  smallest  first trial  kind       id
    KeyError: 'a'     12         5            3  exception  f6f54754
    """

    __str__ = Displayed.__str__

    def shown_title(self) -> str:
        """Return how many faults there are."""
        return f"{len(self):,} {'fault' if len(self) == 1 else 'faults'}"

    def shown_tables(self) -> list[ShownTable]:
        """Return a row per fault, the most frequent first."""
        head = ("fault", "tests", "smallest", "first trial", "kind", "id")
        rows = [
            (each.signature, each.count, each.size, each.first_trial, each.kind, each.id)
            for each in sorted(self, key=lambda fault: (-fault.count, fault.first_trial))
        ]
        return [ShownTable("", head, rows)] if rows else []

    def data_columns(self) -> Mapping[str, Any]:
        """Return a row per fault, in the order of the list."""
        return {
            "id": [each.id for each in self],
            "kind": [each.kind for each in self],
            "signature": [each.signature for each in self],
            "tests": [each.count for each in self],
            "first_trial": [each.first_trial for each in self],
            "trial": [each.trial for each in self],
            "size": [each.size for each in self],
            "test": [each.code or each.test for each in self],
            "details": [each.details for each in self],
        }
