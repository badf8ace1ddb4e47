"""The Hypothesis strategy behind `features()`, and the campaign that it records.

What came of a test is known when its `BuildContext` ends: the exception on its way then is the
verdict. Which test it is and in which phase, objects of Hypothesis know, found among the callers.
"""

from __future__ import annotations

import atexit
import json
import os
import random
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from hypothesis.control import cleanup
from hypothesis.core import StateForActualGivenExecution
from hypothesis.errors import StopTest, UnsatisfiedAssumption
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.strategies import SearchStrategy

from swarmtest.campaign.executors.worker import Batch, Job, Worker
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.configuration import Configuration, weighted
from swarmtest.core.dimensions import Dimension
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test
from swarmtest.core.space import Space
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.strategies.strategy import LearningStrategy, Strategy, parse_strategy, strategy_text
from swarmtest.subjects.hypothesis.internals import fault_in_own_frames, skip_exceptions_to_reraise

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


# -------------------------------------------------------------------------------------------------
# `features()`: a swarm configuration for each test of a plain `@given` test of Hypothesis.
#
# @given(swarm=features("push", "pop", "clear"), data=st.data())
# def test_stack(swarm, data):
# for _ in range(50):
# match swarm.choose(data): ...
#
# Hypothesis has swarm testing for state machines only, and does not report it: its flags shrink
# towards "everything on", so a failing example never tells which features were off. These shrink
# towards *leaving out*: a feature that is still in was needed for the failure.
#
# Hypothesis draws a few bytes, from which the strategy decides, and then for each feature whether
# it
# is in, with odds that follow the decision: so the decision can be shrunk feature by feature.


class DrawnFeatures:
    """Which features one test may use.

    >>> from swarmtest import Space
    >>> swarm = DrawnFeatures(Space(["push", "pop", "clear"]).configuration(["push", "clear"]))
    >>> swarm.enabled, "pop" in swarm, swarm.push
    (('push', 'clear'), False, True)
    >>> swarm
    <push clear, without pop>
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.enabled: tuple[str, ...] = configuration.included
        """The names of the features that are in, in the order of their declaration."""
        self.used: dict[str, int] = {}
        self.events: set[str] = set()

    def __contains__(self, name: str) -> bool:
        if name not in self.configuration.space.feature_names:
            raise self._unknown(name)
        return name in self.enabled

    def __getattr__(self, name: str) -> bool:
        if name.startswith("_") or name not in self.configuration.space.feature_names:
            raise AttributeError(str(self._unknown(name)))
        return name in self.enabled

    def weight(self, name: str) -> float:
        """A feature's weight, from 0 to 1."""
        if name not in self.configuration.space.feature_names:
            raise self._unknown(name)
        weight: float = self.configuration[name]
        return weight

    def choose(self, source: Any) -> str:
        """One of the features that are in, in proportion to their weights.

        `source` is what `st.data()` gives, or a `random.Random`.
        """
        weights = [self.weight(name) for name in self.enabled]
        if isinstance(source, random.Random):
            (name,) = source.choices(self.enabled, weights)
        else:
            name = source.draw(self._sampled(weights))
        self.used[name] = self.used.get(name, 0) + 1
        return name

    def event(self, name: str) -> None:
        """Note that something happened in this test: a target for `swarmtest roles`."""
        self.events.add(name)

    def one_of(self, **strategies: Any) -> Any:
        """`st.one_of` over those of these strategies whose feature is in."""
        from hypothesis import strategies as st

        for name in strategies:
            if name not in self.configuration.space.feature_names:
                raise self._unknown(name)
        kept = [strategy for name, strategy in strategies.items() if name in self.enabled]
        return st.one_of(kept) if kept else st.nothing()

    def _sampled(self, weights: list[float]) -> Any:
        from hypothesis import strategies as st

        if len(set(weights)) == 1:
            return st.sampled_from(self.enabled)
        # Hypothesis samples with equal odds: a name comes up as often as its weight says.
        least = min(weights)
        copies = [max(1, min(16, round(weight / least))) for weight in weights]
        return st.sampled_from(
            [name for name, count in zip(self.enabled, copies, strict=True) for _ in range(count)]
        )

    def _unknown(self, name: str) -> UserError:
        known = self.configuration.space.feature_names
        return UserError(f"there is no feature {name!r}{did_you_mean(name, known)}")

    def __repr__(self) -> str:
        names = self.configuration.space.feature_names
        out = [name for name in names if name not in self.enabled]
        without = f", without {' '.join(out)}" if out else ""
        return f"<{' '.join(self.enabled)}{without}>"


def features(
    *dimensions: Dimension | str | Iterable[Dimension | str] | Space,
    strategy: str | Strategy = "coin",
    record: bool | str | Store | None = None,
) -> SearchStrategy[DrawnFeatures]:
    """A Hypothesis strategy that gives each test a swarm configuration.

    `record` keeps configurations and verdicts as a campaign in a store (a path, or True for the
    usual place), so that `swarmtest roles` tells triggers and suppressors; without, the environment
    variable SWARMTEST_RECORD names a store, if set. Tests count that Hypothesis *generates*: not
    those it replays, mutates or tries while it shrinks.

    >>> from hypothesis import given, settings
    >>> @given(swarm=features("push", "pop"))
    ... @settings(max_examples=5, database=None)
    ... def test(swarm): assert swarm.push or swarm.pop
    >>> test()
    """
    chosen = parse_strategy(strategy) if isinstance(strategy, str) else strategy
    if isinstance(chosen, LearningStrategy):
        raise UserError(
            f"features(): strategy {strategy!r} learns from results, and Hypothesis needs the same "
            "draws to give the same test: use a strategy like coin, layered or covering"
        )
    space = _space(dimensions)
    if space.settings:
        raise UserError("features(): settings are Hypothesis's to draw; give features only")
    try:
        pass
    except ImportError:
        raise UserError(
            "features() needs Hypothesis: pip install 'swarmtest[hypothesis]'"
        ) from None

    return FeaturesStrategy(space, chosen, record)


def _space(dimensions: tuple[Any, ...]) -> Space:
    if len(dimensions) == 1 and isinstance(dimensions[0], Space):
        return dimensions[0]
    if len(dimensions) == 1 and not isinstance(dimensions[0], str | Dimension):
        dimensions = tuple(dimensions[0])
    if not dimensions:
        raise UserError('features(): name at least one feature, like features("push", "pop")')
    return Space(dimensions)


# -------------------------------------------------------------------------------------------------

_FOLLOW = 2**-40
"""The odds that a draw does not follow the strategy: none, but it can still be shrunk."""
_BYTES = 6


_Key: TypeAlias = tuple[str, bool | str | Store, str, str]
_CAMPAIGNS: dict[_Key, GivenCampaign] = {}
"""What this process records: by test, store, space and strategy."""
_DRAWN: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""How many configurations a test drew so far."""


class _NoSubject:
    """What stands where a `@given` test has no subject object."""

    def __init__(self, space: Space) -> None:
        self.space = space


class FeaturesStrategy(SearchStrategy[DrawnFeatures]):
    """Draws configurations of a space."""

    def __init__(self, space: Space, strategy: Strategy, record: bool | str | Store | None) -> None:
        super().__init__()
        self._space = space
        self._record = record
        self._opened: set[_Key] = set()
        if hasattr(strategy, "prepare"):
            strategy.prepare(space)
        subject: Any = _NoSubject(space)
        self._kind = (json.dumps(space.to_json(), sort_keys=True), strategy_text(strategy))
        self._worker = Worker(Job(subject, strategy, seed=0))

    def __repr__(self) -> str:
        return f"features({', '.join(map(repr, self._space.feature_names))})"

    def close(self) -> None:
        """Write what was recorded so far; the end of the process does that, too."""
        for key in self._opened & _CAMPAIGNS.keys():
            _CAMPAIGNS.pop(key).close()

    def do_draw(self, data: Any) -> DrawnFeatures:
        number = int.from_bytes(data.draw_bytes(_BYTES, _BYTES), "big")
        proposal = self._worker.propose(number)
        features = DrawnFeatures(self._drawn(data, proposal.configuration))
        where = os.environ.get("SWARMTEST_RECORD") if self._record is None else self._record
        if where:
            _DRAWN[data] = _DRAWN.get(data, 0) + 1
            asked = features.configuration is proposal.configuration
            campaign = self._campaign_of(data, where) if asked and _phase() == "generate" else None
            if campaign is not None and campaign.is_new(number):
                cpu, wall = time.process_time_ns(), time.monotonic_ns()
                cleanup(lambda: campaign.note(features, proposal, sys.exc_info()[1], cpu, wall))
        return features

    def _campaign_of(self, data: Any, where: bool | str | Store) -> GivenCampaign:
        """The campaign of the test that draws now.

        One strategy may serve several tests, and a test may make a new one each time it runs.
        """
        name = _name_of_test()
        if _DRAWN[data] > 1:
            name = f"{name} ({_DRAWN[data]})"
        key = (name, where, *self._kind)
        if key not in _CAMPAIGNS:
            _CAMPAIGNS[key] = GivenCampaign(self._worker, name, where)
        self._opened.add(key)
        return _CAMPAIGNS[key]

    def _drawn(self, data: Any, wanted: Configuration) -> Configuration:
        """The configuration that was asked for, unless Hypothesis is shrinking or mutating it."""
        weights = []
        for weight in wanted.weights:
            included = data.draw_boolean(1 - _FOLLOW if weight else _FOLLOW)
            weights.append((weight or 1.0) if included else 0.0)
        if weights == list(wanted.weights):
            return wanted
        changed = weighted(self._space, weights, (), wanted.renormalised)
        broken = self._space.violated(changed.bits)
        if broken:
            data.mark_invalid(broken[0])
        return changed


class GivenCampaign:
    """The tests of one `@given` test, kept in a store."""

    def __init__(self, worker: Worker, name: str, where: bool | str | Store) -> None:
        self._worker = worker
        self._tests = 0
        self._seen: set[int] = set()
        self._own = isinstance(where, bool | str)
        if isinstance(where, bool | str):
            self._store = open_store(None if isinstance(where, bool) else where)
        else:
            self._store = where
        space = worker.job.subject.space
        self._number = self._store.add_campaign(
            CampaignRecord(
                subject=name,
                strategy=strategy_text(worker.job.strategy),
                seed=worker.job.seed,
                space=space.to_json(),
                options={"subject": None, "budget": {}, "coverage": None},
                created=time.time(),
            )
        )
        self._recorder = Recorder(self._store, self._number, space)
        self._begun = time.monotonic()
        if self._own:
            atexit.register(self.close)

    def is_new(self, number: int) -> bool:
        """Whether the strategy's odds hold for a test that drew this number.

        Not so if Hypothesis repeats or mutates an earlier one: mutations prefer tests with many
        choices, and so those with many features.
        """
        before = len(self._seen)
        self._seen.add(number)
        return len(self._seen) > before

    def note(
        self,
        features: DrawnFeatures,
        proposal: Proposal,
        error: BaseException | None,
        cpu_since: int,
        wall_since: int,
    ) -> None:
        """Keep what came of a test, unless it gave up or was skipped."""
        given_up = (StopTest, UnsatisfiedAssumption, *skip_exceptions_to_reraise())
        if isinstance(error, given_up):
            return
        names = self._worker.job.subject.space.feature_names
        used = tuple(features.used.get(name, 0) for name in names) if features.used else ()
        fault = fault_in_own_frames(error) if error is not None else None
        verdict = Verdict.FAILED if fault else Verdict.PASSED
        hits = tuple(f"event:{name}" for name in sorted(features.events))
        result = Result(verdict, fault, used, hits, sum(used))
        batch = Batch()
        seed = seed_of_test(self._worker.job.seed, self._tests)
        cpu, wall = time.process_time_ns() - cpu_since, time.monotonic_ns() - wall_since
        self._worker.note(batch, self._tests, proposal, seed, result, cpu, wall)
        self._recorder.add(self._worker.finished(batch).message())
        self._tests += 1
        if not self._own:
            self._write()  # whoever owns the store closes it when they like

    def close(self) -> None:
        """Write what is not written yet, and close the store if it was opened here."""
        if self._own:
            atexit.unregister(self.close)
            self._write()
            self._store.close()

    def _write(self) -> None:
        self._recorder.flush()
        progress = self._recorder.progress
        self._store.update_campaign(
            self._number,
            status="finished",
            wall_seconds=time.monotonic() - self._begun,
            cpu_seconds=progress.cpu_seconds,
        )


def _name_of_test() -> str:
    test = _among_callers(StateForActualGivenExecution).wrapped_test
    inner = test.hypothesis.inner_test
    return f"{test.__module__}:{inner.__qualname__.rpartition('<locals>.')[2]}"


def _phase() -> str:
    """What Hypothesis's engine is doing: reuse, generate, shrink."""
    return str(getattr(_among_callers(ConjectureRunner), "_current_phase", ""))


def _among_callers(kind: type) -> Any:
    """The nearest caller's object of a class; None if there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        found = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames else None
        if isinstance(found, kind):
            return found
        frame = frame.f_back
    return None
