"""swarmtest: random testing that finds more bugs, with swarms of configurations.

The words are those of the papers and of ``docs/``: a *feature* is something a test may contain, a
*configuration* says which features a test may use and with what weight, a *strategy* chooses
configurations, a *subject* is what is tested, a *campaign* runs many tests and keeps what came of
them.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from swarmtest.analysis.intervals import hits_needed, wilson_interval
    from swarmtest.analysis.study import Study
    from swarmtest.campaign import Budget, Campaign, Limits, Outcome, Progress
    from swarmtest.campaign.given_tests import features
    from swarmtest.campaign.kept import Keep
    from swarmtest.campaign.own_loop import Trial, swarm
    from swarmtest.campaign.reducing import Reduced, reduce_test
    from swarmtest.campaign.reduction_quality import Quality, quality_of
    from swarmtest.errors import UserError
    from swarmtest.focus.focus import Focus
    from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget, FocusOutcome
    from swarmtest.focus.request import FocusRequest
    from swarmtest.instrument.native import Program, Run
    from swarmtest.instrument.watch import Coverage, CoverageOptions
    from swarmtest.mutation import (
        KillMatrix,
        Mutant,
        kill_matrix,
        mutants_of,
        mutate_campaign,
        mutate_pytest,
    )
    from swarmtest.reduction import (
        CoverageKept,
        MutantsKept,
        Reducer,
        Reduction,
        Repeated,
        ShellCommand,
        TargetsKept,
    )
    from swarmtest.result import Fault, Result, Verdict
    from swarmtest.search.checkers import (
        AfterRuns,
        AfterSeconds,
        IterationChecker,
        WhenFailed,
        WhenSaturated,
    )
    from swarmtest.search.collapsed import collapsed
    from swarmtest.search.comparing import compare_engines, replay_space
    from swarmtest.search.correlation import correlations
    from swarmtest.search.engines import (
        HillClimbing,
        OptunaEngine,
        RandomOrder,
        Sequential,
        SpaceExhausted,
        parse_engine,
    )
    from swarmtest.search.executors.command import CommandExecutor
    from swarmtest.search.executors.covered import CoveredExecutor
    from swarmtest.search.executors.executor import Executor
    from swarmtest.search.executors.function import FunctionExecutor, SubjectExecutor
    from swarmtest.search.executors.pytest_node import PytestExecutor, collect_pytest
    from swarmtest.search.executors.replayed import ReplayedExecutor
    from swarmtest.search.executors.tasks import CommandTask, FunctionTask
    from swarmtest.search.executors.wrapping import (
        ComposedExecutor,
        RepeatedExecutor,
        TimedExecutor,
    )
    from swarmtest.search.exploration import Exploration
    from swarmtest.search.exporting import export_exploration
    from swarmtest.search.fitness import Fitness
    from swarmtest.search.outcome import SearchOutcome
    from swarmtest.search.reading import load_space
    from swarmtest.search.repeating import repeat_search
    from swarmtest.search.search import Search
    from swarmtest.search.sequences import best_sequence
    from swarmtest.search.space import SearchSpace
    from swarmtest.search.stopping import SearchProgress
    from swarmtest.search.value_roles import value_roles
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
    from swarmtest.subjects.threads.replaying import RaceShown, replay_race
    from swarmtest.subjects.threads.subject import ThreadsSubject
    from swarmtest.suites import Suite, SuiteRequest, SuiteTest, make_suite
    from swarmtest.targets import Catalogue, Hits, Source, Target
    from swarmtest.threads.schedule import Schedule, Switch

__all__ = [
    "Activation",
    "Adaptive",
    "AfterRuns",
    "AfterSeconds",
    "Aim",
    "Budget",
    "Campaign",
    "Catalogue",
    "Choice",
    "Coin",
    "CoinByTime",
    "CommandExecutor",
    "CommandTask",
    "Complete",
    "ComposedExecutor",
    "Configuration",
    "Constraint",
    "Count",
    "Coverage",
    "CoverageKept",
    "CoverageOptions",
    "CoveredExecutor",
    "Covering",
    "Default",
    "Directed",
    "Executor",
    "Exploration",
    "Fault",
    "Feature",
    "Fitness",
    "Flag",
    "Focus",
    "FocusOutcome",
    "FocusRequest",
    "FocusedFault",
    "FocusedTarget",
    "FunctionExecutor",
    "FunctionTask",
    "Generator",
    "Goal",
    "GrammarSubject",
    "HillClimbing",
    "Hits",
    "Integer",
    "IterationChecker",
    "Keep",
    "KillMatrix",
    "Layered",
    "LearningStrategy",
    "Limits",
    "Machine",
    "MachineSubject",
    "MachineTest",
    "Mixture",
    "Mutant",
    "MutantsKept",
    "OptunaEngine",
    "Outcome",
    "Pool",
    "Portfolio",
    "Program",
    "Progress",
    "Proposal",
    "PytestExecutor",
    "Quality",
    "RaceShown",
    "RandomOrder",
    "Reduced",
    "Reducer",
    "Reduction",
    "Repeated",
    "RepeatedExecutor",
    "ReplayedExecutor",
    "Result",
    "RuleBasedSubject",
    "Run",
    "Schedule",
    "Search",
    "SearchOutcome",
    "SearchProgress",
    "SearchSpace",
    "Sequential",
    "ShellCommand",
    "Sized",
    "Source",
    "Space",
    "SpaceExhausted",
    "Step",
    "Store",
    "Strategy",
    "Stream",
    "Study",
    "Subject",
    "SubjectExecutor",
    "Suite",
    "SuiteRequest",
    "SuiteTest",
    "Switch",
    "Target",
    "TargetsKept",
    "Test",
    "ThreadsSubject",
    "TimedExecutor",
    "Trial",
    "UserError",
    "Verdict",
    "WhenFailed",
    "WhenSaturated",
    "action",
    "at_least_one_of",
    "best_sequence",
    "binary",
    "booleans",
    "collapsed",
    "collect_pytest",
    "compare_engines",
    "consumes",
    "correlations",
    "excludes",
    "export_exploration",
    "features",
    "floats",
    "hits_needed",
    "integers",
    "invariant",
    "just",
    "kill_matrix",
    "lists",
    "load_command_subject",
    "load_space",
    "make_suite",
    "mandatory",
    "mutants_of",
    "mutate_campaign",
    "mutate_pytest",
    "one_of",
    "open_store",
    "parse_engine",
    "parse_strategy",
    "quality_of",
    "rates_for",
    "reduce_test",
    "repeat_search",
    "replay_race",
    "replay_space",
    "requires",
    "sampled_from",
    "strategy_names",
    "strategy_text",
    "swarm",
    "text",
    "toss",
    "tuples",
    "value_roles",
    "weigh",
    "wilson_interval",
]

_HOMES = {
    "swarmtest.analysis.intervals": "hits_needed wilson_interval",
    "swarmtest.analysis.study": "Study",
    "swarmtest.campaign": "Budget Campaign Limits Outcome Progress",
    "swarmtest.campaign.given_tests": "features",
    "swarmtest.campaign.kept": "Keep",
    "swarmtest.campaign.own_loop": "Trial swarm",
    "swarmtest.campaign.reducing": "Reduced reduce_test",
    "swarmtest.campaign.reduction_quality": "Quality quality_of",
    "swarmtest.errors": "UserError",
    "swarmtest.focus.focus": "Focus",
    "swarmtest.focus.outcome": "Count FocusOutcome FocusedFault FocusedTarget",
    "swarmtest.focus.request": "FocusRequest",
    "swarmtest.instrument.native": "Program Run",
    "swarmtest.instrument.watch": "Coverage CoverageOptions",
    "swarmtest.mutation": "KillMatrix Mutant kill_matrix mutants_of mutate_campaign mutate_pytest",
    "swarmtest.reduction": (
        "CoverageKept MutantsKept Reducer Reduction Repeated ShellCommand TargetsKept"
    ),
    "swarmtest.result": "Fault Result Verdict",
    "swarmtest.search.checkers": "AfterRuns AfterSeconds IterationChecker WhenFailed WhenSaturated",
    "swarmtest.search.collapsed": "collapsed",
    "swarmtest.search.comparing": "compare_engines replay_space",
    "swarmtest.search.correlation": "correlations",
    "swarmtest.search.engines": (
        "HillClimbing OptunaEngine RandomOrder Sequential SpaceExhausted parse_engine"
    ),
    "swarmtest.search.executors.command": "CommandExecutor",
    "swarmtest.search.executors.covered": "CoveredExecutor",
    "swarmtest.search.executors.executor": "Executor",
    "swarmtest.search.executors.function": "FunctionExecutor SubjectExecutor",
    "swarmtest.search.executors.pytest_node": "PytestExecutor collect_pytest",
    "swarmtest.search.executors.replayed": "ReplayedExecutor",
    "swarmtest.search.executors.tasks": "CommandTask FunctionTask",
    "swarmtest.search.executors.wrapping": "ComposedExecutor RepeatedExecutor TimedExecutor",
    "swarmtest.search.exploration": "Exploration",
    "swarmtest.search.exporting": "export_exploration",
    "swarmtest.search.fitness": "Fitness",
    "swarmtest.search.reading": "load_space",
    "swarmtest.search.repeating": "repeat_search",
    "swarmtest.search.outcome": "SearchOutcome",
    "swarmtest.search.search": "Search",
    "swarmtest.search.sequences": "best_sequence",
    "swarmtest.search.space": "SearchSpace",
    "swarmtest.search.stopping": "SearchProgress",
    "swarmtest.search.value_roles": "value_roles",
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
    "swarmtest.subjects.threads.replaying": "RaceShown replay_race",
    "swarmtest.subjects.threads.subject": "ThreadsSubject",
    "swarmtest.suites": "Suite SuiteRequest SuiteTest make_suite",
    "swarmtest.targets": "Catalogue Hits Source Target",
    "swarmtest.threads.schedule": "Schedule Switch",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """A public name, imported when it is used: the pytest plugin is in every run of pytest."""
    if name == "__version__":
        from swarmtest.version import version

        return version()
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(_importlib.import_module(_HOME[name]), name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
