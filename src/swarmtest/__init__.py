"""swarmtest: random testing that finds more bugs, with swarms of configurations.

The words are those of the papers and of ``docs/``: a *feature* is something a test may contain, a
*configuration* says which features a test may use and with what weight, a *strategy* chooses
configurations, a *subject* is what is tested, a *campaign* runs many tests and keeps what came of
them.
"""

import importlib as _importlib
import importlib.metadata as _metadata
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from swarmtest.analysis.intervals import hits_needed, wilson_interval
    from swarmtest.analysis.study import Study
    from swarmtest.campaign import Budget, Campaign, Limits, Outcome, Progress
    from swarmtest.campaign.given_tests import features
    from swarmtest.campaign.own_loop import Trial, swarm
    from swarmtest.campaign.reducing import Reduced, reduce_test
    from swarmtest.errors import UserError
    from swarmtest.focus.focus import Focus
    from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget, FocusOutcome
    from swarmtest.focus.request import FocusRequest
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
    from swarmtest.strategies.directed.adaptive import Adaptive
    from swarmtest.strategies.directed.aim import Aim, Goal
    from swarmtest.strategies.directed.directed import Directed
    from swarmtest.strategies.directed.portfolio import Portfolio
    from swarmtest.subjects.command import load_command_subject
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
    from swarmtest.subjects.grammar import GrammarSubject
    from swarmtest.subjects.machine import Machine, Pool, action, consumes, invariant
    from swarmtest.subjects.machine_subject import MachineSubject
    from swarmtest.subjects.machine_test import MachineTest, Step
    from swarmtest.subjects.rule_based import RuleBasedSubject
    from swarmtest.subjects.subject import Subject
    from swarmtest.targets import Catalogue, Hits, Source, Target

__all__ = [
    "Activation",
    "Adaptive",
    "Aim",
    "Budget",
    "Campaign",
    "Catalogue",
    "Choice",
    "Coin",
    "CoinByTime",
    "Complete",
    "Configuration",
    "Constraint",
    "Count",
    "Coverage",
    "CoverageOptions",
    "Covering",
    "Default",
    "Directed",
    "Fault",
    "Feature",
    "Flag",
    "Focus",
    "FocusOutcome",
    "FocusRequest",
    "FocusedFault",
    "FocusedTarget",
    "Generator",
    "Goal",
    "GrammarSubject",
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
    "Portfolio",
    "Program",
    "Progress",
    "Proposal",
    "Reduced",
    "Result",
    "RuleBasedSubject",
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
    "features",
    "floats",
    "hits_needed",
    "integers",
    "invariant",
    "just",
    "lists",
    "load_command_subject",
    "mandatory",
    "one_of",
    "open_store",
    "parse_strategy",
    "rates_for",
    "reduce_test",
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

_HOMES = {
    "swarmtest.analysis.intervals": "hits_needed wilson_interval",
    "swarmtest.analysis.study": "Study",
    "swarmtest.campaign": "Budget Campaign Limits Outcome Progress",
    "swarmtest.campaign.given_tests": "features",
    "swarmtest.campaign.own_loop": "Trial swarm",
    "swarmtest.campaign.reducing": "Reduced reduce_test",
    "swarmtest.errors": "UserError",
    "swarmtest.focus.focus": "Focus",
    "swarmtest.focus.outcome": "Count FocusOutcome FocusedFault FocusedTarget",
    "swarmtest.focus.request": "FocusRequest",
    "swarmtest.instrument.native": "Program Run",
    "swarmtest.instrument.watch": "Coverage CoverageOptions",
    "swarmtest.result": "Fault Result Verdict",
    "swarmtest.seeds": "Stream",
    "swarmtest.space": (
        "Choice Configuration Constraint Feature Flag Integer Proposal Space Test "
        "at_least_one_of excludes mandatory rates_for requires toss weigh"
    ),
    "swarmtest.store": "Store open_store",
    "swarmtest.strategies": (
        "Activation Coin CoinByTime Complete Covering Default Layered LearningStrategy Mixture "
        "Sized Strategy parse_strategy strategy_names strategy_text"
    ),
    "swarmtest.strategies.directed.adaptive": "Adaptive",
    "swarmtest.strategies.directed.aim": "Aim Goal",
    "swarmtest.strategies.directed.directed": "Directed",
    "swarmtest.strategies.directed.portfolio": "Portfolio",
    "swarmtest.subjects.command": "load_command_subject",
    "swarmtest.subjects.generators": (
        "Generator binary booleans floats integers just lists one_of sampled_from text tuples"
    ),
    "swarmtest.subjects.grammar": "GrammarSubject",
    "swarmtest.subjects.machine": "Machine Pool action consumes invariant",
    "swarmtest.subjects.machine_subject": "MachineSubject",
    "swarmtest.subjects.machine_test": "MachineTest Step",
    "swarmtest.subjects.rule_based": "RuleBasedSubject",
    "swarmtest.subjects.subject": "Subject",
    "swarmtest.targets": "Catalogue Hits Source Target",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """A public name, imported when it is used: the pytest plugin is in every run of pytest."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(_importlib.import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


try:
    __version__ = _metadata.version("swarmtest")
except _metadata.PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"
