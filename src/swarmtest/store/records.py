"""What a store keeps, as plain records, and the small codecs for their compact columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swarmtest.core.result import Verdict


@dataclass(frozen=True, slots=True)
class CampaignRecord:
    """One campaign: one subject, one strategy, one budget, one seed.

    `options` and `space` are plain data (JSON); `id` is 0 until the store has given one.
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
    """`swarmtest.core.targets.pack_hits`: what imports reached, and so no test in particular."""
    id: int = 0

    @property
    def avoids(self) -> list[str]:
        """The known faults that it kept out of its configurations, in words."""
        told = (self.options.get("subject") or {}).get("avoid", ())
        return [str(one["text"]).removeprefix("avoid ") for one in told]

    @property
    def imported_from(self) -> str:
        """The file of another tool that it was read from; empty for our own campaigns."""
        return str((self.options.get("coverage") or {}).get("from", ""))

    @property
    def label(self) -> str:
        """Its strategy, as people tell it apart: avoiding faults makes it another."""
        return f"{self.strategy} (avoiding)" if self.avoids else self.strategy


class TrialRecord(NamedTuple):
    """One executed test. A tuple, because millions of them pass by.

    >>> TrialRecord(trial=0, configuration=b"\\0\\1", seed=7).verdict
    0
    """

    trial: int
    configuration: bytes
    """`Configuration.to_bytes`."""
    propensities: bytes = b""
    """`pack_floats`: one number, one per feature, or empty when the strategy cannot tell."""
    origin: str = ""
    """Which part of the strategy proposed it: a mixture's member, a layer's family."""
    seed: int = 0
    verdict: int = 0
    fault: str | None = None
    """`Fault.id`, defined in the same batch or an earlier one."""
    steps: int = 0
    skipped: int = 0
    used: bytes = b""
    """`pack_counts`: how often each feature appeared."""
    hits: bytes | None = None
    """`swarmtest.core.targets.pack_hits`; None when there were none."""
    cpu_ns: int = 0
    wall_ns: int = 0
    missing: str = ""
    """Why its coverage is not known; empty when `hits` tell all. For an invalid test: why it is."""

    @property
    def hits_are_known(self) -> bool:
        """Whether `hits` tell all; analyses leave other tests out. An invalid test hits nothing."""
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
    """The trial of the shortest test; on a tie the lowest number."""
    size: int
    """Steps of the shortest test."""
    test: str | None
    """That test as JSON; None when the program died before it could tell."""
    count: int = 0  # type: ignore[assignment]  # hides tuple.count, which nobody needs here
    """How many trials showed it (filled in when read)."""


class ReductionRecord(NamedTuple):
    """A fault's test made smaller. The test that it was made from stays where it was.

    >>> ReductionRecord("4ee18053", trial=17, before=31, size=3, test="[]", complete=True).runs
    0
    """

    fault: str
    """`FaultRecord.id`."""
    trial: int
    """The trial whose test it began with."""
    before: int
    """The parts of that test."""
    size: int
    """The parts that are left."""
    test: str | None
    """What is left, as JSON; None when that test did not show the fault again."""
    details: str = ""
    """What the smaller test printed."""
    runs: int = 0
    """How many tests were run for it."""
    seconds: float = 0.0
    complete: bool = False
    """Whether nothing more can go; False when the time was up before that was known."""
    criterion: str = "fault"
    """What the smaller test had to keep."""


class WorkerRecord(NamedTuple):
    """What a worker of a campaign last said of itself.

    >>> WorkerRecord("ant-17", host="ant", pid=17, started=5.0, last_seen=9.5, tests=40).state
    'working'
    """

    name: str
    """Its own within the campaign."""
    host: str
    pid: int
    started: float
    """Seconds since 1970."""
    last_seen: float
    """When it said this, seconds since 1970."""
    tests: int = 0
    """How many tests it has run so far."""
    state: str = "working"
    """``working``, ``idle``, ``done`` or ``lost``."""


class ProgressPoint(NamedTuple):
    """What a campaign had found by one of its trials: sums from its first trial to this one."""

    trial: int
    """The number of that trial."""
    tests: int
    failed: int
    faults: int
    """Distinct ones."""
    cpu_ns: int


class TestRecord(NamedTuple):
    """A test that was asked to be kept whole, as JSON."""

    trial: int
    test: str


TestRecord.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test class


def pack_floats(values: Sequence[float]) -> bytes:
    """Probabilities in four bytes each.

    >>> unpack_floats(pack_floats([0.5, 0.25]))
    (0.5, 0.25)
    """
    return struct.pack(f"<{len(values)}f", *values)


def unpack_floats(data: bytes) -> tuple[float, ...]:
    """What `pack_floats` wrote, to single precision."""
    return struct.unpack(f"<{len(data) // 4}f", data)


def pack_counts(counts: Sequence[int]) -> bytes:
    """Counts, one byte each where they fit.

    >>> unpack_counts(pack_counts([3, 0, 300]))
    (3, 0, 300)
    """
    try:
        return b"\1" + bytes(counts)
    except ValueError:
        return b"\4" + struct.pack(f"<{len(counts)}I", *counts)


def unpack_counts(data: bytes) -> tuple[int, ...]:
    """What `pack_counts` wrote."""
    if not data:
        return ()
    if data[0] == 1:
        return tuple(data[1:])
    return struct.unpack(f"<{(len(data) - 1) // 4}I", data[1:])
