"""swarmtest: random testing that finds more bugs, with swarms of configurations.

The words are those of the papers and of ``docs/``: a *feature* is something a test may contain, a
*configuration* says which features a test may use and with what weight, a *strategy* chooses
configurations, a *subject* is what is tested, a *campaign* runs many tests and keeps what came of
them.
"""

import importlib.metadata as _metadata

from swarmtest.analysis.intervals import hits_needed, wilson_interval
from swarmtest.analysis.study import Study
from swarmtest.campaign import Budget, Campaign, Limits, Outcome, Progress
from swarmtest.campaign.own_loop import Trial, swarm
from swarmtest.errors import UserError
from swarmtest.instrument.native import Program, Run
from swarmtest.instrument.watch import Coverage, CoverageOptions
from swarmtest.result import Fault, Result, Verdict
from swarmtest.seeds import Stream
from swarmtest.space import (
    Choice,
    Configuration,
    Constraint,
    Feature,
    Flag,
    Integer,
    Proposal,
    Space,
    Test,
    at_least_one_of,
    excludes,
    mandatory,
    rates_for,
    requires,
    toss,
    weigh,
)
from swarmtest.store import Store, open_store
from swarmtest.strategies import (
    Activation,
    Coin,
    CoinByTime,
    Complete,
    Covering,
    Default,
    Layered,
    LearningStrategy,
    Mixture,
    Sized,
    Strategy,
    parse_strategy,
    strategy_names,
    strategy_text,
)
from swarmtest.subjects.generators import (
    Generator,
    binary,
    booleans,
    floats,
    integers,
    just,
    lists,
    one_of,
    sampled_from,
    text,
    tuples,
)
from swarmtest.subjects.machine import Machine, Pool, action, consumes, invariant
from swarmtest.subjects.machine_subject import MachineSubject
from swarmtest.subjects.machine_test import MachineTest, Step
from swarmtest.subjects.subject import Subject
from swarmtest.targets import Catalogue, Hits, Source, Target

__all__ = [
    "Activation",
    "Budget",
    "Campaign",
    "Catalogue",
    "Choice",
    "Coin",
    "CoinByTime",
    "Complete",
    "Configuration",
    "Constraint",
    "Coverage",
    "CoverageOptions",
    "Covering",
    "Default",
    "Fault",
    "Feature",
    "Flag",
    "Generator",
    "Hits",
    "Integer",
    "Layered",
    "LearningStrategy",
    "Limits",
    "Machine",
    "MachineSubject",
    "MachineTest",
    "Mixture",
    "Outcome",
    "Pool",
    "Program",
    "Progress",
    "Proposal",
    "Result",
    "Run",
    "Sized",
    "Source",
    "Space",
    "Step",
    "Store",
    "Strategy",
    "Stream",
    "Study",
    "Subject",
    "Target",
    "Test",
    "Trial",
    "UserError",
    "Verdict",
    "action",
    "at_least_one_of",
    "binary",
    "booleans",
    "consumes",
    "excludes",
    "floats",
    "hits_needed",
    "integers",
    "invariant",
    "just",
    "lists",
    "mandatory",
    "one_of",
    "open_store",
    "parse_strategy",
    "rates_for",
    "requires",
    "sampled_from",
    "strategy_names",
    "strategy_text",
    "swarm",
    "text",
    "toss",
    "tuples",
    "weigh",
    "wilson_interval",
]

try:
    __version__ = _metadata.version("swarmtest")
except _metadata.PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
