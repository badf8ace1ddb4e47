"""Optuna's samplers over a search space, behind `ask` and `tell`."""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.search.engines.engine import USUAL_FITNESS, Judge, RandomOrder
from swarmtest.search.results import Score
from swarmtest.search.space import digits_of, is_allowed, is_ordered, point_of, values_of

SAMPLERS = {"tpe": "", "cma": "cmaes", "nsga2": "", "qmc": "scipy", "gp": "torch"}
"""The samplers, and the package that each needs besides Optuna."""
_ASKED_AGAIN = 20
"""After this many forbidden or known proposals in a row, a random new point is taken."""


@dataclass
class OptunaEngine:
    """A sampler of Optuna: ``tpe``, ``cma``, ``nsga2``, ``qmc`` or ``gp``.

    Ordered dimensions are numbers for it, the others categories. If it proposes a known point, it
    gets the known score, unless `again` is set, which is for tests whose results vary. A fitness
    with several objectives needs ``nsga2`` or ``tpe``.

    >>> from swarmtest import Integer, Test
    >>> from swarmtest.search import Search, SearchSpace
    >>> def hill(x): return {"height": -(x - 40) ** 2}
    >>> space = SearchSpace([Integer("x", 0, 100), Test("test", ["hill"])], {"hill": hill})
    >>> engine = OptunaEngine("tpe")
    >>> outcome = Search(space, engine, fitness="height", points=60, store=":memory:").run()
    >>> abs(outcome.best["x"] - 40) <= 5
    True
    """

    strategy_name: ClassVar[str] = "optuna"

    sampler: str = "tpe"
    again: bool = False
    fitness: Judge = field(default=USUAL_FITNESS, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            known = did_you_mean(self.sampler, SAMPLERS)
            raise UserError(f"optuna has no sampler {self.sampler!r} here{known}")
        self._study: Any = None
        self._open: dict[Configuration, list[Any]] = {}
        self._scores: dict[Configuration, Score] = {}
        self._random = RandomOrder()
        self._drawn = 0

    def prepare(self, space: Space) -> None:
        """Start again, in a space."""
        optuna_library()
        needed = SAMPLERS[self.sampler]
        if needed and importlib.util.find_spec(needed) is None:
            raise UserError(f"optuna:sampler={self.sampler} needs {needed}: pip install {needed}")
        self.__post_init__()

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Return the sampler's next proposal that is allowed and not known."""
        with _quietly():
            if self._study is None:
                self._study = self._begin(space, rng)
            for _ in range(_ASKED_AGAIN):
                trial_of_optuna = self._study.ask(self._distributions)
                point = self._point(space, trial_of_optuna)
                if not is_allowed(space, point):
                    self._study.tell(trial_of_optuna, state=optuna_library().trial.TrialState.FAIL)
                elif point in self._scores and not self.again:
                    self._study.tell(trial_of_optuna, list(self._scores[point]))
                else:
                    return self._proposed(point, trial_of_optuna, self.sampler)
            return self._something_new(space, rng)

    def tell(self, result: Result) -> None:
        """Pass the score of a result on to Optuna."""
        point = result.configuration
        if point is None:
            return
        score = self.fitness(result)
        self._scores[point] = score
        waiting = self._open.get(point)
        if waiting:
            with _quietly():
                self._study.tell(waiting.pop(0), list(score))

    def _proposed(self, point: Configuration, asked: Any, origin: str) -> Proposal:
        self._open.setdefault(point, []).append(asked)
        return Proposal(point, origin=origin)

    def _something_new(self, space: Space, rng: Stream) -> Proposal:
        """Return a random point that is not known, as if the sampler had proposed it."""
        while True:
            point = self._random.ask(space, self._drawn, rng).configuration
            self._drawn += 1
            if point not in self._scores:
                break
        self._study.enqueue_trial(self._parameters(point))
        return self._proposed(point, self._study.ask(self._distributions), "random")

    def _begin(self, space: Space, rng: Stream) -> Any:
        optuna = optuna_library()
        distributions = optuna.distributions
        self._distributions: dict[str, Any] = {}
        for dimension in space.dimensions:
            values = values_of(dimension)
            if len(values) == 1:
                continue
            if is_ordered(dimension):
                distribution = distributions.IntDistribution(0, len(values) - 1)
            else:
                distribution = distributions.CategoricalDistribution(range(len(values)))
            self._distributions[dimension.name] = distribution
        if self.sampler == "cma" and not any(map(is_ordered, space.dimensions)):
            raise UserError("optuna:sampler=cma needs dimensions that are ordered, and none is")
        seed = rng.of_campaign(0).getrandbits(31)
        objectives = getattr(self.fitness, "objectives", 1)
        return optuna.create_study(
            sampler=_sampler(self.sampler, seed), directions=["maximize"] * objectives
        )

    def _point(self, space: Space, asked: Any) -> Configuration:
        return point_of(space, [asked.params.get(d.name, 0) for d in space.dimensions])

    def _parameters(self, point: Configuration) -> dict[str, int]:
        named = zip(point.space.dimensions, digits_of(point), strict=True)
        return {d.name: digit for d, digit in named if d.name in self._distributions}


def _sampler(name: str, seed: int) -> Any:
    samplers = optuna_library().samplers
    makers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: samplers.TPESampler(seed=seed, multivariate=True, group=True),
        "cma": lambda: samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        "nsga2": lambda: samplers.NSGAIISampler(seed=seed),
        "qmc": lambda: samplers.QMCSampler(
            seed=seed, scramble=True, warn_independent_sampling=False
        ),
        "gp": lambda: samplers.GPSampler(seed=seed),
    }
    return makers[name]()


def optuna_library() -> Any:
    """Import and return Optuna; raise an error that says how to install it."""
    try:
        import optuna
    except ImportError:
        raise UserError("Optuna is not installed: pip install 'swarmtest[optuna]'") from None
    return optuna


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Suppress Optuna's messages about each trial and its warnings about experimental features."""
    optuna = optuna_library()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
