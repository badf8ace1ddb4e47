"""Export a campaign's failing tests to Hypothesis's example database.

Hypothesis keeps failing examples in a database, and every later run of pytest replays them. The
failing tests that swarmtest finds in a Hypothesis state machine belong there too.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.store.records import FaultRecord, ReductionRecord

_REDUCTION_SECONDS = 20.0


def hand_over_faults(
    subject: Any, faults: Iterable[FaultRecord], reductions: Mapping[str, ReductionRecord]
) -> list[str]:
    """Export the smallest test of each fault; return a line of text about each.

    A subject that does not come from Hypothesis gives an empty list.
    """
    if not hasattr(subject, "hand_over"):
        return []
    return [
        _export_line(subject, fault, reductions.get(fault.id))
        for fault in faults
        if fault.test is not None
    ]


def _export_line(subject: Any, record: FaultRecord, reduction: ReductionRecord | None) -> str:
    assert record.test is not None
    fault = record.fault
    small = reduction.test if reduction is not None else None
    test = json.loads(small or record.test)
    handed = subject.hand_over(test, fault)
    is_minimal = reduction is not None and reduction.complete
    if not handed.saved and not is_minimal and fault.kind in ("exception", "invariant"):
        # A shorter test may fit into the database where this one does not.
        from swarmtest.reduce.reduction import reduce_test

        try:
            reduced = reduce_test(subject, test, fault.key, budget=_REDUCTION_SECONDS)
        except UserError:
            pass
        else:
            handed = subject.hand_over(reduced.test, fault)
    if handed.saved:
        file = shlex.quote(_test_file(subject))
        return f"fault {fault.id} is in Hypothesis's example database: pytest {file} replays it"
    return f"fault {fault.id} is not in Hypothesis's example database: {handed.why}"


def _test_file(subject: Any) -> str:
    """Return the file that pytest collects, which need not be the file that defines the class."""
    path = str(subject.name).partition("::")[0]
    return os.path.relpath(path if os.path.isfile(path) else subject.harness)
