"""After a campaign: failing tests go to the tool that the subject came from, if it takes them.

A Hypothesis user has a database of failing examples, which every later run of pytest replays; what
swarmtest found belongs there.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.store.records import FaultRecord, ReductionRecord

_REDUCTION_SECONDS = 20.0


def hand_over_faults(
    subject: Any, faults: Iterable[FaultRecord], reductions: Mapping[str, ReductionRecord]
) -> list[str]:
    """Hand the smallest test of each fault over; a line on each. Nothing for other subjects."""
    if not hasattr(subject, "hand_over"):
        return []
    return [
        _line(subject, fault, reductions.get(fault.id))
        for fault in faults
        if fault.test is not None
    ]


def _line(subject: Any, record: FaultRecord, reduction: ReductionRecord | None) -> str:
    assert record.test is not None
    fault = Fault(record.kind, record.signature)
    small = reduction.test if reduction is not None else None
    test = json.loads(small or record.test)
    handed = subject.hand_over(test, fault)
    least = reduction is not None and reduction.complete
    if not handed.saved and not least and fault.kind in ("exception", "invariant"):
        # A shorter test may fit where this one does not.
        from swarmtest.reduce.reduction import reduce_test

        try:
            reduced = reduce_test(subject, test, fault.id, budget=_REDUCTION_SECONDS)
        except UserError:
            pass
        else:
            handed = subject.hand_over(reduced.test, fault)
    if handed.saved:
        file = shlex.quote(_test_file(subject))
        return f"fault {fault.id} is in Hypothesis's example database: pytest {file} replays it"
    return f"fault {fault.id} is not in Hypothesis's example database: {handed.why}"


def _test_file(subject: Any) -> str:
    """Where pytest finds the test: not where the class is defined, if that is another file."""
    named = str(subject.name).partition("::")[0]
    return os.path.relpath(named if os.path.isfile(named) else subject.harness)
