"""Which recorded faults are shown as one.

A store records what was seen: every trial keeps the identity of its failure. That two identities
are one fault is a decision beside the data, so it can be taken back. `swarmtest.reduce` decides by
rule, after it has reduced the tests of a campaign's faults; a person decides with ``swarmtest
faults --merge`` and ``--split``, and the decision of a person wins.

Everything that reads faults, trials or reductions from a store sees the groups. `Store.recorded` is
the same store without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from swarmtest.core.result import Fault
from swarmtest.store.records import FaultRecord, ReductionRecord

if TYPE_CHECKING:
    from swarmtest.store.interface import Store

RULE, PERSON = "rule", "person"
"""Who decides."""


class FaultDecision(NamedTuple):
    """A decision about one recorded fault.

    >>> FaultDecision("4ee18053", "4ee18053", PERSON, "split").is_split
    True
    """

    fault: str
    """The recorded fault."""
    same_as: str
    """The fault as which it is shown; itself, if it is one of its own."""
    decided_by: str
    """``rule`` or ``person``."""
    reason: str = ""
    decided: float = 0.0
    """Seconds since 1970."""

    @property
    def is_split(self) -> bool:
        """Return whether the fault is to be shown on its own."""
        return self.fault == self.same_as


def effective(decisions: Iterable[FaultDecision]) -> dict[str, FaultDecision]:
    """Return the decision that counts for each fault: that of a person, otherwise the rule's.

    >>> found = effective([FaultDecision("b", "a", RULE), FaultDecision("b", "b", PERSON)])
    >>> found["b"].is_split
    True
    """
    counting: dict[str, FaultDecision] = {}
    for decision in decisions:
        earlier = counting.get(decision.fault)
        if earlier is None or earlier.decided_by != PERSON:
            counting[decision.fault] = decision
    return counting


def groups_of(decisions: Iterable[FaultDecision]) -> dict[str, str]:
    """Return the fault as which each merged fault is shown, without those shown as themselves.

    >>> groups_of([FaultDecision("c", "b", RULE), FaultDecision("b", "a", RULE)])
    {'c': 'a', 'b': 'a'}
    """
    counting = effective(decisions)
    groups = {}
    for fault in counting:
        seen = [fault]
        while (next_one := counting.get(seen[-1])) and next_one.same_as not in seen:
            seen.append(next_one.same_as)
        if len(seen) > 1:
            groups[fault] = seen[-1]
    # In a circle of decisions, which only a damaged store has, every fault stays on its own.
    return {fault: shown for fault, shown in groups.items() if shown not in groups}


def merge_faults(records: Sequence[FaultRecord], groups: Mapping[str, str]) -> list[FaultRecord]:
    """Return the faults of a campaign with those of a group joined.

    A group has the test of the fault as which it is shown, or else that of its shortest member, all
    its tests, and the first of its first trials.
    """
    members: dict[str, list[FaultRecord]] = {}
    for record in records:
        members.setdefault(groups.get(record.id, record.id), []).append(record)
    merged = [_merged(id, group) for id, group in members.items()]
    return sorted(merged, key=lambda record: (record.first_trial, record.id))


def _merged(id: str, members: Sequence[FaultRecord]) -> FaultRecord:
    if len(members) == 1 and members[0].id == id:
        return members[0]
    # Kind, signature and test have to fit together: the test shows exactly this.
    shown = min(members, key=lambda each: (each.test is None, each.id != id, each.size, each.trial))
    return shown._replace(
        id=id,
        first_trial=min(each.first_trial for each in members),
        count=sum(each.count for each in members),
        also=tuple(sorted(each.id for each in members if each.id != id)),
    )


def names_of_faults(store: Store, campaign: int) -> dict[Fault, str]:
    """Return the id as which each fault of a campaign is shown.

    A test that is run again shows a `Fault` without such an id.
    """
    groups = groups_of(store.fault_decisions())
    recorded = store.recorded.faults(campaign)
    return {each.fault: groups.get(each.id, each.id) for each in recorded}


def merge_reductions(
    records: Sequence[ReductionRecord], groups: Mapping[str, str]
) -> list[ReductionRecord]:
    """Return the reductions of a campaign by group: that of the fault as which it is shown.

    If it has none, that of the member with the smallest test counts.
    """
    best: dict[tuple[str, str], ReductionRecord] = {}
    for record in sorted(records, key=lambda each: _preference(each, groups)):
        shown = groups.get(record.fault, record.fault)
        best.setdefault((shown, record.criterion), record._replace(fault=shown))
    return [best[key] for key in sorted(best)]


def _preference(record: ReductionRecord, groups: Mapping[str, str]) -> tuple[bool, bool, int, bool]:
    return (record.test is None, record.fault in groups, record.size, not record.complete)
