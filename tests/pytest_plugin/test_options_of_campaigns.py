"""Budgets, seeds and stores: from the command line, a marker, the ini file, or by default."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pytest_suites import FAULTY, FINE

from swarmtest.pytest_plugin.options import commit_in_ci, seed_of_commit

pytest_plugins = "pytester"
SHA = "5a46433d41cdd78a5d6c60961f2a61583206a57f"


@pytest.fixture
def campaign(pytester, write, store):
    """The record of the campaign that a run of one machine made."""

    def run(*arguments, mark=""):
        text = FINE.replace("class", f"{mark}\n    class") if mark else FINE
        write(test_it=f"    import pytest{text}")
        pytester.runpytest(*arguments).assert_outcomes(passed=1)
        return store().campaigns()[-1]

    return run


MARK = "@pytest.mark.swarm(tests=7, strategy='all-on', seed=3)"


@pytest.mark.parametrize(
    ("ini", "mark", "arguments", "expected"),
    [
        ("", "", (), {"tests": 1000, "wall_seconds": 15.0}),
        ("swarm_tests = 9", "", (), {"tests": 9}),
        ("swarm_tests = 9\nswarm_time = 2s", "", (), {"tests": 9, "wall_seconds": 2.0}),
        ("swarm_tests = 9", MARK, (), {"tests": 7}),
        ("swarm_tests = 9", MARK, ("--swarm-tests", "5"), {"tests": 5}),
        ("swarm_tests = 9", "", ("--swarm-time", "100ms"), {"wall_seconds": 0.1}),
    ],
)
def test_who_sets_a_limit_sets_the_budget(pytester, campaign, ini, mark, arguments, expected):
    pytester.makeini(f"[pytest]\n{ini}\n")
    assert campaign(*arguments, mark=mark).options["budget"] == expected


def test_strategy_and_seed_are_those_of_the_command_line_then_of_the_marker(pytester, campaign):
    pytester.makeini("[pytest]\nswarm_strategy = coin\nswarm_seed = 11\n")
    record = campaign()
    assert (record.strategy, record.seed) == ("coin", 11)
    record = campaign(mark=MARK)
    assert (record.strategy, record.seed) == ("all-on", 3)
    record = campaign("--swarm-strategy", "layered", "--swarm-seed", "12", mark=MARK)
    assert (record.strategy, record.seed) == ("layered", 12)


def test_the_commit_gives_the_seed_in_ci(pytester, campaign, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", SHA)
    assert campaign().seed == seed_of_commit(SHA)


def test_the_header_tells_the_seed_and_where_it_is_from(pytester, monkeypatch):
    monkeypatch.setenv("CI_COMMIT_SHA", SHA)
    result = pytester.runpytest()
    result.stdout.fnmatch_lines([f"swarmtest: seed {seed_of_commit(SHA)}, of commit {SHA[:12]}"])


def test_a_random_seed_is_told_so_that_the_run_can_be_repeated(pytester, write):
    write(test_it=FAULTY)
    result = pytester.runpytest("--swarm-seed", "random", "--swarm-tests", "200")
    seeds = set(re.findall(r"seed (\d+)", result.stdout.str()))
    assert len(seeds) == 1
    assert seeds == set(re.findall(r"rerun: .* --swarm-seed (\d+)", result.stdout.str()))


def test_the_line_to_rerun_finds_the_same(pytester, write, store):
    write(test_it=FAULTY)
    result = pytester.runpytest("--swarm-seed", "17", "--swarm-tests", "60")
    [line] = re.findall(r"^rerun: pytest (.*)", result.stdout.str(), re.MULTILINE)
    pytester.runpytest(*line.split())
    first, second = (store().faults(campaign) for campaign in (1, 2))
    assert first == second != []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--swarm-time", "soon"),
            "swarm_time: 'soon' is not a duration: write 30s, 5m, 2h or 1m30s",
        ),
        (("--swarm-tests", "many"), "swarm_tests is a whole number, not 'many'"),
        (("--swarm-tests", "-3"), "swarm_tests is at least 0, not -3"),
        (("--swarm-seed", "x"), "--swarm-seed is a whole number or `random`, not 'x'"),
        (("--swarm-strategy", "coim"), "did you mean 'coin'?"),
        (("-o", "swarm_workers=-1"), "swarm_workers is at least 0, not -1"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_runs(
    pytester, write, arguments, words
):
    write(test_it=FINE)
    result = pytester.runpytest(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


def test_a_marker_that_is_spelt_wrongly_is_refused(pytester, write):
    write(
        test_it="    import pytest" + FINE.replace("class", "@pytest.mark.swarm(test=3)\n    class")
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["pytest.mark.swarm has no 'test'; did you mean 'tests'?"])


def test_the_store_is_where_the_user_says(pytester, write, monkeypatch):
    write(test_it=FINE)
    pytester.makeini("[pytest]\nswarm_store = kept/ini.db\n")
    pytester.runpytest("--swarm-tests", "5")
    pytester.runpytest("--swarm-tests", "5", "--swarm-store", "typed.db")
    monkeypatch.setenv("SWARMTEST_STORE", "variable.db")
    pytester.runpytest("--swarm-tests", "5")
    found = {str(path.relative_to(pytester.path)) for path in pytester.path.rglob("*.db")}
    assert found == {"kept/ini.db", "typed.db", "variable.db"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ""),
        ({"GITHUB_SHA": SHA, "GIT_COMMIT": "0" * 40}, SHA),
        ({"BUILDKITE_COMMIT": "HEAD"}, ""),
        ({"GIT_COMMIT": SHA.upper()}, SHA),
        ({"CI": "false"}, ""),
    ],
)
def test_ci_systems_name_the_commit_in_their_own_ways(tmp_path, environment, expected):
    assert commit_in_ci(environment, tmp_path) == expected


def test_any_other_ci_is_asked_through_git(tmp_path: Path) -> None:
    assert commit_in_ci({"CI": "true"}, tmp_path) == ""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], cwd=tmp_path, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert commit_in_ci({"CI": "true"}, tmp_path) == head.stdout.strip()
    assert commit_in_ci({}, tmp_path) == ""
