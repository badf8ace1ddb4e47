"""The records that a store keeps, and the codecs for their compact columns."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swarmtest.core.result import Fault, Verdict

_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class CampaignRecord:
    """One campaign: one subject, one strategy, one budget, one seed.

    `options` and `space` are plain data (JSON); `id` is 0 until the store has assigned one.
    """

    subject: str
    strategy: str
    seed: int
    space: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    status: str = "running"
    """``running``, ``finished`` or ``interrupted``."""
    created: float = 0.0
    """Seconds since 1970."""
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    outside: bytes | None = None
    """`swarmtest.core.targets.pack_hits`: what imports reached, and so no particular test."""
    id: int = 0

    @property
    def avoids(self) -> list[str]:
        """The known faults that its configurations avoided, in words."""
        constraints = (self.options.get("subject") or {}).get("avoid", ())
        return [str(each["text"]).removeprefix("avoid ") for each in constraints]

    @property
    def imported_from(self) -> str:
        """The file of another tool that it was imported from; empty for our own campaigns."""
        return str((self.options.get("coverage") or {}).get("from", ""))

    @property
    def killed(self) -> list[int]:
        """The trials that were run again, because their process was killed from outside."""
        return list(self.options.get("killed") or ())

    @property
    def label(self) -> str:
        """Its strategy, marked if it avoided known faults, which makes it a different one."""
        return f"{self.strategy} (avoiding)" if self.avoids else self.strategy


def note_of_kills(trials: Collection[int]) -> str:
    """Say which tests were run again, because their process was killed; empty if none was.

    >>> note_of_kills([17])
    'test 17: its process was killed from outside once, so it ran again'
    """
    if not trials:
        return ""
    *first, last = map(str, sorted(trials)[:_MOST_SHOWN])
    more = f" and {len(trials) - _MOST_SHOWN:,} more" if len(trials) > _MOST_SHOWN else ""
    if len(trials) == 1:
        return f"test {last}: its process was killed from outside once, so it ran again"
    listed = f"{', '.join([*first, last])}{more}" if more else f"{', '.join(first)} and {last}"
    return f"tests {listed}: their process was killed from outside once, so they ran again"


class TrialRecord(NamedTuple):
    """One executed test. A tuple, because there may be millions of them.

    >>> TrialRecord(trial=0, configuration=b"\\0\\1", seed=7).verdict
    0
    """

    trial: int
    configuration: bytes
    """`Configuration.to_bytes`."""
    propensities: bytes = b""
    """`pack_floats`: one number for all features, one for each, or empty if they are unknown."""
    origin: str = ""
    """Which part of the strategy proposed it: a mixture's member, a layer's family."""
    seed: int = 0
    verdict: int = 0
    fault: str | None = None
    """`Fault.id`; the fault is recorded in the same batch or an earlier one."""
    steps: int = 0
    skipped: int = 0
    used: bytes = b""
    """`pack_counts`: how often each feature appeared."""
    hits: bytes | None = None
    """`swarmtest.core.targets.pack_hits`; None when there were none."""
    cpu_ns: int = 0
    wall_ns: int = 0
    missing: str = ""
    """Why its coverage is not known; empty if `hits` is complete. For an invalid test: why it is
    invalid."""

    def with_hits(self, hits: bytes | None) -> TrialRecord:
        """Return the trial with other hits, in a quarter of the time that `_replace` takes."""
        return TrialRecord(
            self.trial,
            self.configuration,
            self.propensities,
            self.origin,
            self.seed,
            self.verdict,
            self.fault,
            self.steps,
            self.skipped,
            self.used,
            hits,
            self.cpu_ns,
            self.wall_ns,
            self.missing,
        )

    @property
    def hits_are_known(self) -> bool:
        """Whether `hits` is complete, as for invalid tests; analyses leave other tests out."""
        return not self.missing or self.verdict == Verdict.INVALID


class FaultRecord(NamedTuple):
    """A fault of a campaign, with its shortest test so far."""

    id: str
    kind: str
    signature: str
    details: str
    first_trial: int
    """The lowest trial number that showed it."""
    trial: int
    """The trial of the shortest test; of equally short ones, the lowest number."""
    size: int
    """Steps of the shortest test."""
    test: str | None
    """The shortest test as JSON; None if the program died before it could send the test."""
    count: int = 0  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    """How many trials showed it; computed when it is read."""
    code: str = ""
    """The shortest test as its subject printed it, so that it can be shown without the subject."""
    also: tuple[str, ...] = ()
    """The recorded faults that are shown as this one (`swarmtest.store.fault_groups`)."""

    @property
    def fault(self) -> Fault:
        """The fault that its test shows, with the id that it has here."""
        return Fault(self.kind, self.signature, self.details, self.id)


class FaultEvent(NamedTuple):
    """Something that happened to a fault of a subject; `swarmtest.store.fault_lives` explains them.

    >>> FaultEvent("stack.py", "4ee18053", "seen", time=5.0, version="3f2a1bc40d17").campaign
    0
    """

    subject: str
    """`CampaignRecord.subject`."""
    fault: str
    """`FaultRecord.id`."""
    event: str
    """``seen``, ``older`` (seen in an older version than the fix), ``passed`` (its test ran, and
    passed each time), or what a person marked it as: ``known``, ``open``, ``fixed``."""
    time: float
    """Seconds since 1970."""
    version: str = ""
    """What was tested: commit and packages; empty if that is not known."""
    campaign: int = 0
    """The campaign that showed it; 0 if it was none, or if it was deleted."""
    note: str = ""


class ReductionRecord(NamedTuple):
    """A reduced test of a fault. The original test stays in the store.

    >>> ReductionRecord("4ee18053", trial=17, before=31, size=3, test="[]", complete=True).runs
    0
    """

    fault: str
    """`FaultRecord.id`."""
    trial: int
    """The trial of the original test."""
    before: int
    """How many parts the original test has."""
    size: int
    """How many parts are left."""
    test: str | None
    """The reduced test as JSON; None if the original test did not show the fault again."""
    details: str = ""
    """What the reduced test printed."""
    runs: int = 0
    """How many tests were run for the reduction."""
    seconds: float = 0.0
    complete: bool = False
    """Whether no more parts can be removed; False if the time was up before that was known."""
    criterion: str = "fault"
    """What the reduced test had to keep."""
    code: str = ""
    """The reduced test as its subject printed it."""


class WorkerRecord(NamedTuple):
    """The latest report of a worker of a campaign.

    >>> WorkerRecord("ant-17", host="ant", pid=17, started=5.0, last_seen=9.5, tests=40).state
    'working'
    """

    name: str
    """Unique within the campaign."""
    host: str
    pid: int
    started: float
    """Seconds since 1970."""
    last_seen: float
    """When it sent this report, seconds since 1970."""
    tests: int = 0
    """How many tests it has run so far."""
    state: str = "working"
    """``working``, ``idle``, ``done`` or ``lost``."""


class ProgressPoint(NamedTuple):
    """What a campaign had found up to one of its trials: sums from the first trial to this one."""

    trial: int
    """The number of that trial."""
    tests: int
    failed: int
    faults: int
    """How many distinct faults."""
    cpu_ns: int


class TestRecord(NamedTuple):
    """A whole test as JSON, kept on request."""

    trial: int
    test: str


TestRecord.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test class


def pack_floats(values: Sequence[float]) -> bytes:
    """Pack probabilities in four bytes each.

    >>> unpack_floats(pack_floats([0.5, 0.25]))
    (0.5, 0.25)
    """
    return struct.pack(f"<{len(values)}f", *values)


def unpack_floats(data: bytes) -> tuple[float, ...]:
    """Return the numbers that `pack_floats` packed, in single precision."""
    return struct.unpack(f"<{len(data) // 4}f", data)


def pack_counts(counts: Sequence[int]) -> bytes:
    """Pack counts, in one byte each if all fit, otherwise in four.

    >>> unpack_counts(pack_counts([3, 0, 300]))
    (3, 0, 300)
    """
    try:
        return b"\1" + bytes(counts)
    except ValueError:
        return b"\4" + struct.pack(f"<{len(counts)}I", *counts)


def unpack_counts(data: bytes) -> tuple[int, ...]:
    """Return the counts that `pack_counts` packed."""
    if not data:
        return ()
    if data[0] == 1:
        return tuple(data[1:])
    return struct.unpack(f"<{(len(data) - 1) // 4}I", data[1:])
