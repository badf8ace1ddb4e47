"""The outcome of a focused campaign, as plain values that reports, CI and benchmarks read.

Invariants: `directed`, `undirected` and `default` count tests whose hits are known. A target that
was dropped (`dropped` says why) has no aim, but its hits are counted all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.analysis.intervals import wilson_interval
from swarmtest.store.records import FaultRecord, ReductionRecord


@dataclass(frozen=True)
class Count:
    """The hits of something: in how many tests, and in how much CPU time.

    >>> Count(hits=3, tests=12, cpu_seconds=0.5).fraction
    0.25
    """

    hits: int = 0
    tests: int = 0
    cpu_seconds: float = 0.0

    @property
    def fraction(self) -> float:
        """Return the hitting fraction; 0 if there was no test."""
        return self.hits / self.tests if self.tests else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Wilson's interval of the hitting fraction.

        >>> tuple(round(bound, 2) for bound in Count(3, 12).interval())
        (0.09, 0.53)
        """
        if not self.tests:
            return 0.0, 1.0
        low, high = wilson_interval(self.hits, self.tests, confidence)
        return float(low), float(high)

    @property
    def per_cpu_second(self) -> float:
        """Return the hits per CPU second; 0 if no time was spent."""
        return self.hits / self.cpu_seconds if self.cpu_seconds else 0.0


@dataclass(frozen=True)
class FocusedTarget:
    """One target of a focused campaign, and how often each sort of tests hit it.

    >>> target = FocusedTarget("line:cart.py:22", directed=Count(80, 100), undirected=Count(1, 10))
    >>> target.directed.fraction / target.undirected.fraction
    8.0
    """

    target: str
    """``kind:name`` in the current code, as in ``line:shop/cart.py:12``."""
    file: str = ""
    line: int = 0
    function: str = ""
    proxy: str = ""
    """What was aimed at instead because there was too little data, in words: ``line
    shop/cart.py:9, which comes before it``; empty if its own data was enough."""
    mapped: str = ""
    """How data of an earlier version was found for it, in words (``line 10 of an earlier
    version``); empty if the file has not changed."""
    dropped: str = ""
    """Why it was not aimed at (``hit by 71% of tests anyway``); empty if it was."""
    triggers: tuple[str, ...] = ()
    suppressors: tuple[str, ...] = ()
    directed: Count = Count()
    undirected: Count = Count()
    """Undirected swarm tests: the control tests of this campaign, and earlier ones."""
    default: Count = Count()
    """Tests with the default configuration: of this campaign, and earlier ones."""
    configurations: int = 0
    """Distinct configurations among the directed tests that hit it."""
    ways: int = 0
    """Distinct sets of its function's lines that the directed tests that hit it executed."""

    @property
    def stand_in(self) -> str:
        """Return `proxy`, under its former name."""
        return self.proxy


@dataclass(frozen=True)
class FocusedFault:
    """A fault that a focused campaign found.

    >>> record = FaultRecord("4ee18053", "exception", "ValueError", "", 0, 0, 3, None)
    >>> FocusedFault(record, Count(5, 100), Count(), status="new").status
    'new'
    """

    record: FaultRecord
    directed: Count
    undirected: Count
    status: str = ""
    """``new``, ``old`` (the base version shows it too) or ``unknown``; empty if not checked."""
    why_unknown: str = ""
    location: tuple[str, int] | None = None
    """File and line in the program where it failed, if known."""
    replay: str = ""
    """The command that replays it."""
    reduced: ReductionRecord | None = None
    """Its reduced test, if it was reduced."""
    reduced_in: int = 0
    """The campaign that the reduced test comes from."""
    part: str = "step"
    """What its test consists of."""
    code: str = ""
    """The reduced test as code."""
    known: bool = False
    """Whether the store had seen it before, and it was not fixed."""
    life: tuple[str, ...] = ()
    """Its state and history, in lines."""

    @property
    def age(self) -> str:
        """Return `status`; ``known`` for a fault that the store had seen before.

        >>> record = FaultRecord("4ee18053", "exception", "ValueError", "", 0, 0, 3, None)
        >>> FocusedFault(record, Count(5, 100), Count(), status="new", known=True).age
        'known'
        """
        return "known" if self.known and self.status != "old" else self.status


@dataclass(frozen=True)
class FocusOutcome:
    """The whole outcome of one focused campaign.

    >>> FocusOutcome("cart.py::CartMachine", campaign=2, strategy="adaptive").faults
    ()
    """

    subject: str
    campaign: int
    strategy: str
    base: str = ""
    """The revision that the code was compared with; empty if targets were named otherwise."""
    targets: tuple[FocusedTarget, ...] = ()
    faults: tuple[FocusedFault, ...] = ()
    unusable: tuple[str, ...] = ()
    """What could not be aimed at, one line each: files that are not watched, comments, ..."""
    notes: tuple[str, ...] = ()
    tests: int = 0
    directed_tests: int = 0
    invalid: int = 0
    distinct_configurations: int = 0
    """Distinct configurations among the directed tests."""
    merged_aims: int = 0
    """How many aims were left after merging; 0 if the strategy does not merge."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    data_campaigns: tuple[int, ...] = ()
    """The campaigns that roles were computed from."""
    interrupted: bool = False
    """Whether the user interrupted it."""
