"""What the command line, the ini file and a test's marker say about campaigns.

Who is heard first: the command line, then the marker, then the ini file, then the defaults. Limits
go together: whoever sets one of tests and time sets the whole budget, as in `swarmtest run`.
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


# -------------------------------------------------------------------------------------------------
# The seed of a run that was given none: in CI it follows from the commit, so reruns are equal.

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
"""Where CI systems say which commit is tested; the last is Jenkins's, and the most common word."""
_HASH = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)


def commit_in_ci(environment: Mapping[str, str], place: Path) -> str:
    """The commit that a CI system is testing; empty if this is no CI, or nobody knows.

    >>> commit_in_ci({"GITHUB_SHA": "5a46433d" * 5}, Path())[:8]
    '5a46433d'
    >>> commit_in_ci({}, Path())
    ''
    """
    told = (environment.get(name, "") for name in COMMIT_VARIABLES)
    found = next((text for text in told if _HASH.fullmatch(text)), "")
    if not found and environment.get("CI", "").lower() not in ("", "0", "false"):
        found = _head(place)
    return found.lower()


def _head(place: Path) -> str:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=place, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = done.stdout.strip()
    return text if _HASH.fullmatch(text) else ""


def seed_of_commit(commit: str) -> int:
    """A number that is short enough to be typed.

    >>> seed_of_commit("5a46433d")
    1172866967
    """
    return int.from_bytes(hashlib.blake2b(commit.encode(), digest_size=4).digest(), "big")


# -------------------------------------------------------------------------------------------------

MARKER = (
    "swarm(tests=None, time=None, strategy=None, seed=None, workers=None): how long and how "
    "swarmtest tests this machine, unless the command line says otherwise"
)
_TESTS, _TIME = 1000, "15s"
"""More than the ten seconds of one test, so that one that hangs is a fault."""
_KNOWN = ("tests", "time", "strategy", "seed", "workers")
_SETTINGS = pytest.StashKey["Settings"]()


def add_options(parser: pytest.Parser) -> None:
    """Declare the options and the keys of the ini file."""
    group = parser.getgroup("swarmtest", "machines as tests, and coverage per test, by swarmtest")
    option = group.addoption
    option("--swarm-tests", metavar="N", help="stop each machine after N tests (0: collect none)")
    option("--swarm-time", metavar="TIME", help="stop each machine after this time: 30s, 5m, 2h")
    option("--swarm-seed", metavar="SEED", help="a number: same seed, same tests; or `random`")
    option("--swarm-strategy", metavar="NAME", help="as for `swarmtest run --strategy`")
    option("--swarm-workers", metavar="N", help="processes for each machine; 0: in this one (1)")
    option("--swarm-store", metavar="FILE", help="where campaigns are kept")
    option(
        "--swarm-focus",
        metavar="REV",
        help="aim the tests of each machine at what was changed since a git revision; machines "
        "that cannot reach it are skipped",
    )
    option(
        "--swarm-hypothesis",
        action="store_true",
        help="run the state machines of Hypothesis by swarmtest",
    )
    option(
        "--swarm-coverage",
        metavar="KINDS",
        help="watch what each test reaches: line, block, branch, predicate, path, prime, du",
    )
    option(
        "--swarm-cover",
        action="append",
        default=[],
        metavar="NAME",
        help="a module, package or path to watch (again for more; default: what is here)",
    )
    option(
        "--swarm-coverage-file",
        metavar="FILE",
        default="swarm-coverage.json",
        help="where to write it: .json, .lcov, .xml or a coverage.py data file (%(default)s)",
    )
    option(
        "--race",
        action="store_true",
        help="run each test that starts threads many times, under schedules of swarmtest's",
    )
    option("--race-tests", metavar="N", help="runs of each such test (200)")
    option("--race-time", metavar="TIME", help="time for each such test (2s)")
    option("--race-seed", metavar="SEED", help="a number: same seed, same schedules (0)")
    option(
        "--race-cover",
        action="append",
        default=[],
        metavar="NAME",
        help="a module, package or path that gets probes (again for more; default: what is here)",
    )
    for name, text in (
        ("tests", f"tests of each machine ({_TESTS} if no limit is given; 0: collect none)"),
        ("time", f"time of each machine ({_TIME} if no limit is given)"),
        ("seed", "a number, or `random` (the commit's in CI, else 0)"),
        ("strategy", "who chooses the configurations (layered, or coin)"),
        ("workers", "processes for each machine (1)"),
        ("store", "where campaigns are kept, from the root directory (.swarmtest/swarmtest.db)"),
    ):
        parser.addini(f"swarm_{name}", text)


@dataclass(frozen=True)
class Plan:
    """How one machine is tested."""

    budget: Budget
    strategy: str | None
    seed: int
    workers: int


class Settings:
    """The options of a run, checked."""

    def __init__(self, config: pytest.Config) -> None:
        self._given = {name: config.getoption(f"swarm_{name}") for name in _KNOWN}
        self._ini = {name: config.getini(f"swarm_{name}") or None for name in _KNOWN}
        self.seed, self.seed_in_words = self._seed(config)
        self.store = _store(config)
        """The path of the store, from anywhere."""
        self.focus: str | None = config.getoption("swarm_focus")
        """The revision whose changes tests are aimed at."""
        self.hypothesis = bool(config.getoption("swarm_hypothesis"))
        """Whether Hypothesis's state machines are run by swarmtest."""
        limits = _first_with_limits(self._given, self._ini)
        self.collects = limits.get("tests") is None or _number("swarm_tests", limits["tests"]) > 0
        """Whether machines and subjects are tests at all."""
        if any(self._given.values()) or any(self._ini.values()):
            self.check()

    def check(self) -> None:
        """Raise a `UserError` where a value makes no sense."""
        if self.collects:
            self.plan({})
        if self._choice("strategy", {}):
            from swarmtest.strategies.strategy import parse_strategy

            parse_strategy(str(self._choice("strategy", {})))

    def plan(self, marker: dict[str, Any]) -> Plan:
        """How a machine with this marker is tested."""
        for name in marker:
            if name not in _KNOWN:
                raise UserError(f"pytest.mark.swarm has no {name!r}{did_you_mean(name, _KNOWN)}")
        seed = self.seed
        if marker.get("seed") is not None and self._given["seed"] is None:
            seed = _number("pytest.mark.swarm(seed=...)", marker["seed"])
        strategy, workers = self._choice("strategy", marker), self._choice("workers", marker)
        return Plan(
            _budget(_first_with_limits(self._given, marker, self._ini)),
            None if strategy is None else str(strategy),
            seed,
            1 if workers is None else _number("swarm_workers", workers),
        )

    def as_typed(self, plan: Plan) -> list[str]:
        """What to type to run with the same options and the same seed again."""
        given = self._given | {"seed": plan.seed}
        words = ["--swarm-hypothesis"] if self.hypothesis else []
        words += [f"--swarm-focus={self.focus}"] if self.focus is not None else []
        for name in _KNOWN:
            if given[name] is not None:
                words += [f"--swarm-{name}", str(given[name])]
        return words

    def _choice(self, name: str, marker: dict[str, Any]) -> Any:
        told = (self._given[name], marker.get(name), self._ini[name])
        return next((value for value in told if value is not None), None)

    def _seed(self, config: pytest.Config) -> tuple[int, str]:
        told = getattr(config, "workerinput", {}).get("swarm_seed")
        text = told if told is not None else self._choice("seed", {})
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


def settings_of(config: pytest.Config) -> Settings:
    """The settings of a run; made when they are first asked for."""
    found = config.stash.get(_SETTINGS, None)
    if found is None:
        try:
            found = config.stash[_SETTINGS] = Settings(config)
        except UserError as error:
            raise pytest.UsageError(with_our_options(str(error))) from None
    return found


def with_our_options(text: str) -> str:
    """A message with the names that the command line's options have here.

    >>> with_our_options("--cover tomly: no such module")
    '--swarm-cover tomly: no such module'
    """
    return re.sub(r"(?<!\S)--(cover|coverage|store|workers|strategy|seed)\b", r"--swarm-\1", text)


def _first_with_limits(*told: dict[str, Any]) -> dict[str, Any]:
    """The first that sets a limit; none: no limit is set."""
    for one in told:
        if one.get("tests") is not None or one.get("time") is not None:
            return one
    return {}


def _budget(told: dict[str, Any]) -> Budget:
    from swarmtest.campaign.budget import Budget

    tests, time = told.get("tests"), told.get("time")
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


def _store(config: pytest.Config) -> str:
    """A relative path is one from here if it is typed here, and from the root in the ini file."""
    typed = config.getoption("swarm_store") or os.environ.get("SWARMTEST_STORE")
    place = config.invocation_params.dir if typed else config.rootpath
    named = typed or config.getini("swarm_store") or os.path.join(".swarmtest", "swarmtest.db")
    special = named == ":memory:" or "://" in named
    return named if special else str(place / named)
