"""Names that ``from swarmtest import ...`` had in 0.1 and that are now in a package below it.

They still work, with a warning that says where they are; delete this module in the release after.
"""

import sys
import warnings

_MOVED = {
    "swarmtest.analysis": "hits_needed wilson_interval",
    "swarmtest.campaign": "Limits Progress",
    "swarmtest.coverage": "Catalogue CoverageOptions Hits Program Run Source Target",
    "swarmtest.focus": "Count Focus FocusOutcome FocusRequest FocusedFault FocusedTarget",
    "swarmtest.mutate": "KillMatrix Mutant kill_matrix mutants_of mutate_campaign mutate_pytest",
    "swarmtest.race": "RaceShown Schedule Switch ThreadsSubject replay_race",
    "swarmtest.reduce": """
        CoverageKept Keep MutantsKept Quality Reduced Reducer Reduction Repeated
        ShellCommand TargetsKept quality_of reduce_test
    """,
    "swarmtest.roles": "Study",
    "swarmtest.search": """
        AfterRuns AfterSeconds CommandExecutor CommandTask ComposedExecutor CoveredExecutor
        Exploration Fitness FunctionExecutor FunctionTask HillClimbing
        IterationChecker OptunaEngine PytestExecutor RandomOrder RepeatedExecutor
        ReplayedExecutor Search SearchOutcome SearchProgress SearchSpace Sequential
        SpaceExhausted SubjectExecutor TimedExecutor WhenFailed WhenSaturated best_sequence
        collapsed collect_pytest compare_engines correlations export_exploration load_space
        parse_engine repeat_search replay_space value_roles
    """,
    "swarmtest.strategies": """
        Activation Adaptive Aim Coin CoinByTime Complete Covering Default Directed Goal
        Layered LearningStrategy Mixture Portfolio Proposal Sized Stream parse_strategy
        rates_for strategy_names strategy_text toss weigh
    """,
    "swarmtest.subjects": """
        Generator GrammarSubject MachineSubject MachineTest RuleBasedSubject Step
        load_command_subject
    """,
    "swarmtest.suite": "Suite SuiteRequest SuiteTest make_suite",
}
_RENAMED = {"kill_matrix": "compute_kill_matrix"}
"""Names that changed when they moved."""

PLACES = {
    old: (package, _RENAMED.get(old, old))
    for package, names in _MOVED.items()
    for old in names.split()
}
"""The package of each name, and what it is called there."""


def find_moved(name: str) -> object:
    """Return what `name` was in ``swarmtest``, and warn that it is somewhere else now.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     study = find_moved("Study")
    >>> print(caught[0].message)
    swarmtest.Study is now swarmtest.roles.Study: write `from swarmtest.roles import Study`
    """
    package, new = PLACES[name]
    __import__(package)
    warnings.warn(
        f"swarmtest.{name} is now {package}.{new}: write `from {package} import {new}`",
        DeprecationWarning,
        stacklevel=3,
    )
    value: object = getattr(sys.modules[package], new)
    return value
