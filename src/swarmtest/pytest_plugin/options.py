"""The options of campaigns: from the command line, a test's marker and the ini file.

The command line takes precedence over the marker, the marker over the ini file, and the ini file
over the defaults. The limits for tests and time belong together: a source that sets one of them
sets the whole budget, as in `swarmtest run`.

A run without a seed has seed 0. In CI its seed follows from the commit, so that a rerun is equal.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarmtest.core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from swarmtest.campaign.budget import Budget


COMMIT_VARIABLES = (
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "BUILDKITE_COMMIT",
    "CIRCLE_SHA1",
    "BUILD_SOURCEVERSION",
    "BITBUCKET_COMMIT",
    "TRAVIS_COMMIT",
    "DRONE_COMMIT_SHA",
    "APPVEYOR_REPO_COMMIT",
    "SEMAPHORE_GIT_SHA",
    "CIRRUS_CHANGE_IN_REPO",
    "CODEBUILD_RESOLVED_SOURCE_VERSION",
    "BUILD_VCS_NUMBER",
    "GIT_COMMIT",
)
"""The variables in which CI systems name the commit. The last one is Jenkins's; other programs may
use that name too."""
_HASH = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)


def commit_in_ci(environment: Mapping[str, str], place: Path) -> str:
    """Return the commit that a CI system is testing; empty outside CI, or if it is not known.

    >>> commit_in_ci({"GITHUB_SHA": "5a46433d" * 5}, Path())[:8]
    '5a46433d'
    >>> commit_in_ci({}, Path())
    ''
    """
    values = (environment.get(name, "") for name in COMMIT_VARIABLES)
    commit = next((text for text in values if _HASH.fullmatch(text)), "")
    if not commit and environment.get("CI", "").lower() not in ("", "0", "false"):
        commit = _head(place)
    return commit.lower()


def _head(directory: Path) -> str:
    """Return the commit that git has checked out in a directory; empty if there is none."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        git = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = git.stdout.strip()
    return text if _HASH.fullmatch(text) else ""


def seed_of_commit(commit: str) -> int:
    """Return a seed for a commit, short enough to be typed.

    >>> seed_of_commit("5a46433d")
    1172866967
    """
    return int.from_bytes(hashlib.blake2b(commit.encode(), digest_size=4).digest(), "big")


# Options.

MARKER = (
    "swarm(tests=None, time=None, strategy=None, seed=None, workers=None): how long and how "
    "swarmtest tests this machine, unless the command line says otherwise"
)
_TESTS, _TIME = 1000, "15s"
"""The default time is longer than the ten seconds of one test, so that a test that hangs becomes a
fault."""
FAIL_ON = ("new", "any", "never")
"""As in `swarmtest.campaign.failing_faults`, which is not imported just to declare options."""
_KNOWN = ("tests", "time", "strategy", "seed", "workers")
_SETTINGS = pytest.StashKey["PluginSettings"]()


def add_options(parser: pytest.Parser) -> None:
    """Declare the options and the keys of the ini file."""
    group = parser.getgroup("swarmtest", "swarmtest: machines as tests, coverage per test")
    option = group.addoption
    option("--swarm-tests", metavar="N", help="stop each machine after N tests; 0 collects none")
    option("--swarm-time", metavar="TIME", help="stop each machine after this time: 30s, 5m, 2h")
    option(
        "--swarm-seed",
        metavar="SEED",
        help="a number (the same seed gives the same tests), or `random`",
    )
    option(
        "--swarm-strategy",
        metavar="NAME",
        help="how configurations are chosen, as for `swarmtest run --strategy`",
    )
    option(
        "--swarm-workers",
        metavar="N",
        help="worker processes for each machine; 0 runs tests in this process (default: 1)",
    )
    option("--swarm-store", metavar="FILE", help="where campaigns are stored")
    option(
        "--swarm-focus",
        metavar="REV",
        help="aim the tests of each machine at lines that changed since a git revision; "
        "machines that cannot reach them are skipped",
    )
    option(
        "--swarm-no-why",
        action="store_true",
        help="do not explain faults by experiments on their reduced tests",
    )
    option(
        "--swarm-fail-on",
        choices=FAIL_ON,
        help="which faults fail: new (not seen by the store before, or back again), any, or never "
        "(default: any)",
    )
    option(
        "--swarm-hypothesis",
        action="store_true",
        help="run the state machines of Hypothesis with swarmtest",
    )
    option(
        "--swarm-coverage",
        metavar="KINDS",
        help="measure what each test reaches: line, block, branch, predicate, path, prime, du",
    )
    option(
        "--swarm-cover",
        action="append",
        default=[],
        metavar="NAME",
        help="a module, package or path to measure (may be repeated; default: the code here)",
    )
    option(
        "--swarm-coverage-file",
        metavar="FILE",
        default="swarm-coverage.json",
        help="the coverage file: .json, .lcov, .xml or a coverage.py data file (%(default)s)",
    )
    option(
        "--race",
        action="store_true",
        help="run each test that starts threads many times, under schedules that swarmtest chooses",
    )
    option("--race-tests", metavar="N", help="number of runs of each such test (default: 200)")
    option("--race-time", metavar="TIME", help="longest time for each such test (default: 2s)")
    option(
        "--race-seed",
        metavar="SEED",
        help="a number; the same seed gives the same schedules (default: 0)",
    )
    option(
        "--race-cover",
        action="append",
        default=[],
        metavar="NAME",
        help="a module, package or path in which threads are switched (may be repeated; "
        "default: the code here)",
    )
    for name, text in (
        (
            "tests",
            f"number of tests of each machine ({_TESTS} if no limit is given; 0 collects none)",
        ),
        ("time", f"longest time of each machine ({_TIME} if no limit is given)"),
        ("seed", "a number, or `random` (the commit's in CI, else 0)"),
        ("strategy", "how configurations are chosen (default: layered, or coin)"),
        ("workers", "worker processes for each machine (default: 1)"),
        ("fail_on", "which faults fail: new, any or never (default: any)"),
        (
            "store",
            "where campaigns are stored, relative to the root directory (.swarmtest/swarmtest.db)",
        ),
    ):
        parser.addini(f"swarm_{name}", text)


@dataclass(frozen=True)
class CampaignPlan:
    """How one machine is tested."""

    budget: Budget
    strategy: str | None
    seed: int
    workers: int


class PluginSettings:
    """The options of a run, checked."""

    def __init__(self, config: pytest.Config) -> None:
        self._typed = {name: config.getoption(f"swarm_{name}") for name in _KNOWN}
        self._ini = {name: config.getini(f"swarm_{name}") or None for name in _KNOWN}
        self.seed, self.seed_in_words = self._seed(config)
        self.store = _store(config)
        """The absolute path of the store, or its URL."""
        self.focus: str | None = config.getoption("swarm_focus")
        """The revision since which changes are aimed at."""
        self.fail_on = _fail_on(config)
        """Which faults fail a test: one of `FAIL_ON`."""
        self.hypothesis = bool(config.getoption("swarm_hypothesis"))
        """Whether swarmtest runs Hypothesis's state machines."""
        limits = _first_with_limits(self._typed, self._ini)
        self.collects = limits.get("tests") is None or _number("swarm_tests", limits["tests"]) > 0
        """Whether machines and subjects are collected as tests."""
        if any(self._typed.values()) or any(self._ini.values()):
            self.check()

    def check(self) -> None:
        """Raise a `UserError` if a value is invalid."""
        if self.collects:
            self.plan({})
        if self._choice("strategy", {}):
            from swarmtest.strategies.strategy import parse_strategy

            parse_strategy(str(self._choice("strategy", {})))

    def plan(self, marker: dict[str, Any]) -> CampaignPlan:
        """Return how a machine with this marker is tested."""
        for name in marker:
            if name not in _KNOWN:
                raise UserError(f"pytest.mark.swarm has no {name!r}{did_you_mean(name, _KNOWN)}")
        seed = self.seed
        if marker.get("seed") is not None and self._typed["seed"] is None:
            seed = _number("pytest.mark.swarm(seed=...)", marker["seed"])
        strategy, workers = self._choice("strategy", marker), self._choice("workers", marker)
        return CampaignPlan(
            _budget(_first_with_limits(self._typed, marker, self._ini)),
            None if strategy is None else str(strategy),
            seed,
            1 if workers is None else _number("swarm_workers", workers),
        )

    def as_typed(self, plan: CampaignPlan) -> list[str]:
        """Return the command-line options for a run with the same options and the same seed."""
        typed = self._typed | {"seed": plan.seed}
        words = ["--swarm-hypothesis"] if self.hypothesis else []
        words += [f"--swarm-fail-on={self.fail_on}"] if self.fail_on != "any" else []
        words += [f"--swarm-focus={self.focus}"] if self.focus is not None else []
        for name in _KNOWN:
            if typed[name] is not None:
                words += [f"--swarm-{name}", str(typed[name])]
        return words

    def _choice(self, name: str, marker: dict[str, Any]) -> Any:
        values = (self._typed[name], marker.get(name), self._ini[name])
        return next((value for value in values if value is not None), None)

    def _seed(self, config: pytest.Config) -> tuple[int, str]:
        from_controller = getattr(config, "workerinput", {}).get("swarm_seed")
        text = from_controller if from_controller is not None else self._choice("seed", {})
        if text == "random":
            seed = secrets.randbelow(10**6)
            return seed, f"seed {seed}"
        if text is not None:
            seed = _number("--swarm-seed", text, least=None, also=" or `random`")
            return seed, f"seed {seed}"
        commit = commit_in_ci(os.environ, config.rootpath)
        if commit:
            seed = seed_of_commit(commit)
            return seed, f"seed {seed}, of commit {commit[:12]}"
        return 0, "seed 0"


def settings_of(config: pytest.Config) -> PluginSettings:
    """Return the settings of a run, created on first use."""
    settings = config.stash.get(_SETTINGS, None)
    if settings is None:
        try:
            settings = config.stash[_SETTINGS] = PluginSettings(config)
        except UserError as error:
            raise pytest.UsageError(with_our_options(str(error))) from None
    return settings


def with_our_options(text: str) -> str:
    """Return a message with pytest's names for the options of `swarmtest`.

    >>> with_our_options("--cover tomly: no such module")
    '--swarm-cover tomly: no such module'
    """
    return re.sub(r"(?<!\S)--(cover|coverage|store|workers|strategy|seed)\b", r"--swarm-\1", text)


def _first_with_limits(*sources: dict[str, Any]) -> dict[str, Any]:
    """Return the first source of options that sets a limit; empty if none does."""
    for options in sources:
        if options.get("tests") is not None or options.get("time") is not None:
            return options
    return {}


def _budget(options: dict[str, Any]) -> Budget:
    from swarmtest.campaign.budget import Budget

    tests, time = options.get("tests"), options.get("time")
    if tests is None and time is None:
        tests, time = _TESTS, _TIME
    return Budget(
        tests=None if tests is None else _number("swarm_tests", tests),
        wall_seconds=None if time is None else _seconds(time),
    )


def _seconds(time: Any) -> float:
    from swarmtest.campaign.budget import parse_seconds

    try:
        return parse_seconds(str(time))
    except UserError as error:
        raise UserError(f"swarm_time: {error}") from None


def _number(name: str, value: Any, least: int | None = 0, also: str = "") -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} is a whole number{also}, not {value!r}") from None
    if least is not None and number < least:
        raise UserError(f"{name} is at least {least}, not {value}")
    return number


def _fail_on(config: pytest.Config) -> str:
    text = str(config.getoption("swarm_fail_on") or config.getini("swarm_fail_on") or "any")
    if text not in FAIL_ON:
        raise UserError(f"swarm_fail_on is new, any or never, not {text!r}")
    return text


def _store(config: pytest.Config) -> str:
    """Return the store's path or URL.

    A relative path on the command line starts from the current directory, one in the ini file from
    the root directory.
    """
    typed = config.getoption("swarm_store") or os.environ.get("SWARMTEST_STORE")
    directory = config.invocation_params.dir if typed else config.rootpath
    store = typed or config.getini("swarm_store") or os.path.join(".swarmtest", "swarmtest.db")
    is_path = store != ":memory:" and "://" not in store
    return str(directory / store) if is_path else store
