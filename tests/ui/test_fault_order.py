"""Crashes come first, then what oracles found, then other exceptions; and a screen is enough."""

from __future__ import annotations

import io

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.store.records import FaultRecord
from swarmtest.ui.terminal.fault_order import IN_A_LINE, IN_FULL, brief_lines, divided
from swarmtest.ui.terminal.progress import PlainLines


def fault(number: int, kind: str = "exception", signature: str = "KeyError") -> FaultRecord:
    return FaultRecord(f"{number:08x}", kind, signature, "", number, number, 1, None, count=3)


def test_faults_are_ordered_by_severity_and_then_as_found() -> None:
    faults = [
        fault(1),
        fault(2, "differential", "Difference: pop"),
        fault(3, "timeout", "no end"),
        fault(4, "exception", "AssertionError [f]"),
        fault(5),
        fault(6, "signal", "SIGSEGV"),
    ]
    ordered = divided(faults, everything=True).full
    assert [each.trial for each in ordered] == [3, 6, 2, 4, 1, 5]


def test_a_few_are_shown_in_full_and_the_rest_is_counted() -> None:
    faults = divided([fault(number) for number in range(100)])
    assert len(faults.full) == IN_FULL
    lines = brief_lines(faults, "swarmtest faults 1 --full")
    assert lines[1] == f"{100 - IN_FULL} more faults:"
    assert lines[-2] == f"... and {100 - IN_FULL - IN_A_LINE} more"
    assert lines[-1].endswith("swarmtest faults 1 --full")
    assert len(lines) == IN_A_LINE + 4


def test_few_faults_need_no_list() -> None:
    faults = divided([fault(number) for number in range(IN_FULL)])
    assert brief_lines(faults, "swarmtest faults 1 --full") == []
    more = brief_lines(divided([fault(number) for number in range(IN_FULL + 1)]), "all")
    assert more[1] == "1 more fault:"
    assert more[2] == "fault 00000003  exception: KeyError"
    assert len(more) == 4


def test_new_faults_are_named_up_to_a_number() -> None:
    out = io.StringIO()
    view = PlainLines(Budget(tests=10), out)
    for start in range(0, 60, 15):
        view.update(Progress(tests=5), [fault(start + n) for n in range(15)])
    lines = out.getvalue().splitlines()
    assert sum(line.startswith(("new fault", "fault")) for line in lines) == 20
    assert lines[-1] == "more new faults are counted, not named"
    assert len(lines) == 21
