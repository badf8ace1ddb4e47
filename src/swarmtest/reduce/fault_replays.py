"""Run the test of a fault again, and note in its history whether it is still there.

A fault is called fixed only if its smallest test ran as a whole and passed several times. It is not
if the test fails in another way, if steps of it were skipped, or if the fault did not show reliably
before: then nobody knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from swarmtest.campaign.fault_sightings import sighting
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.campaign.subject_version import subject_version
from swarmtest.core.formatting import plural
from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.perturbation import replayed
from swarmtest.reduce.named_tests import NamedTest, fault_test, seconds_of
from swarmtest.store.fault_groups import groups_of
from swarmtest.store.fault_lives import FIXED, PASSED, FaultLife, fault_lives
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultEvent
from swarmtest.subjects.subject import Subject, named_fault
from swarmtest.ui.terminal.fault_lives import state_text

TIMES = 3
"""How often a test has to pass before its fault is called fixed."""
_FLAKY_BEFORE = "it did not show again when its test was to be reduced, so that says little"


class FaultReplay(NamedTuple):
    """What running the test of a fault again has shown."""

    before: FaultLife
    after: FaultLife
    runs: int
    shown: int
    """How many of the runs showed the fault."""
    result: Result
    """The result of the first run that showed the fault; otherwise of the last one."""
    unclear: str = ""
    """Why runs that do not show the fault prove nothing; empty if they do."""

    @property
    def text(self) -> str:
        """The result in one line.

        >>> life = FaultLife("stack.py", "4ee18053", "open")
        >>> FaultReplay(life, life, 1, 1, Result(Verdict.FAILED)).text
        'fault 4ee18053 is still there'
        >>> life = FaultLife("stack.py", "4ee18053", FIXED)
        >>> FaultReplay(life, life, 1, 1, Result(Verdict.FAILED)).text
        'fault 4ee18053 is in this version, which is older than the one that fixed it'
        """
        name = f"fault {self.after.fault}"
        if self.shown:
            is_back = self.before.state == FIXED and self.after.state != FIXED
            words = state_text(self.after) if is_back else "still there"
            if self.after.state == FIXED:  # otherwise it would be back again
                words = "in this version, which is older than the one that fixed it"
            some = f" (in {self.shown} of {self.runs} runs)" if self.runs > self.shown else ""
            return f"{name} is {words}{some}"
        if self.unclear and not self.runs:
            return f"{name} stays {self.after.state}: its test cannot be run ({self.unclear})"
        if self.unclear:
            return f"{name} did not show, but {self.unclear}: it stays {self.after.state}"
        if self.after.state == FIXED:
            return f"{name} is {state_text(self.after)}"
        return f"{name} did not show in {plural(self.runs, 'run')}: {state_text(self.after)}"


Runner = Callable[[NamedTest], Result]
"""What runs a test once."""


def replay_fault(
    store: Store, life: FaultLife, times: int = TIMES, timeout: float | None = None
) -> FaultReplay:
    """Run the smallest test of a fault, up to `times` times while it passes, and note the result.

    The subject is loaded in this process; each run has a process of its own.
    """
    named = fault_test(store, life.fault, life.subject, timeout)
    seconds = seconds_of(named.subject, timeout)

    def run(test: NamedTest) -> Result:
        return replayed(
            lambda: run_isolated(lambda: test.subject.replay(test.data), seconds, quiet=True),
            lambda fault: named_fault(test.subject, fault).is_called(life.fault),
        )

    return examine_fault(store, life, named, run, times)


def examine_fault(
    store: Store, life: FaultLife, named: NamedTest, run: Runner, times: int
) -> FaultReplay:
    """Run a test of a fault with `run`, and note the result in the history of the fault."""
    times = 1 if life.state == FIXED else times
    results: list[Result] = []
    shown = 0
    for _ in range(times):
        results.append(run(named))
        shown += _shows(store, named.subject, results[-1], life.fault)
        if shown or results[-1].verdict != Verdict.PASSED:
            break
    unclear = "" if shown else _why_unclear(store, life, named, results)
    version = subject_version(named.subject)
    event = None
    if shown:
        event = sighting(life, life.subject, life.fault, version, time.time())
        if len(results) > shown:
            event = event._replace(note=f"in {shown} of {len(results)} runs of its test")
    elif not unclear and life.state != FIXED:
        note = f"its test passed {plural(len(results), 'time')}"
        event = FaultEvent(life.subject, life.fault, PASSED, time.time(), version, note=note)
    if event is not None:
        store.add_fault_events([event])
    after = life if event is None else life.after(event)
    return FaultReplay(life, after, len(results), shown, results[-1], unclear)


def _shows(store: Store, subject: Subject, result: Result, fault: str) -> bool:
    if result.fault is None:
        return False
    groups = groups_of(store.fault_decisions())
    shown = named_fault(subject, result.fault).id
    return groups.get(shown, shown) == groups.get(fault, fault)


def _why_unclear(store: Store, life: FaultLife, named: NamedTest, results: list[Result]) -> str:
    last = results[-1]
    if last.fault is not None:
        other = named_fault(named.subject, last.fault)
        return f"its test fails in another way (fault {other.id}: {other.signature})"
    if last.verdict == Verdict.INVALID:
        return f"its test cannot be run ({last.missing})"
    if any(result.skipped for result in results):
        return f"{plural(last.skipped, named.subject.part)} of its test could not run"
    if not last.steps and named.subject.part == "step":
        return "nothing of its test ran"
    if len(results) == 1 and life.state != FIXED:
        return "its test ran only once"
    reductions = [reductions_of(store, record.id) for record in _campaigns(store, life)]
    tried = [each[life.fault] for each in reductions if life.fault in each]
    return _FLAKY_BEFORE if tried and all(each.test is None for each in tried) else ""


def _campaigns(store: Store, life: FaultLife) -> list[CampaignRecord]:
    return [record for record in store.campaigns() if record.subject == life.subject]


def lives_to_replay(store: Store, subject: str) -> list[FaultLife]:
    """Return the lives of the faults of a subject that have a test, the open ones first."""
    with_test = {
        fault.id
        for record in store.campaigns()
        if record.subject == subject and record.options.get("subject")
        for fault in store.faults(record.id)
        if fault.test is not None
    }
    lives = [life for life in fault_lives(store, subject).values() if life.fault in with_test]
    return sorted(lives, key=lambda life: (life.state == FIXED, life.first_seen))
