"""A small run of every benchmark: it works, prints its figures, and the robust goals hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def figures_of(name: str, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), "--quick", *options],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    *table, last = done.stdout.strip().splitlines()
    assert len(table) > 3, "a benchmark prints a table that a person can read"
    figures: dict[str, Any] = json.loads(last)
    return figures


def test_detection_finds_the_papers_odds_for_a_swarm() -> None:
    figures = figures_of("detection.py")
    # 10,000 tests at 1 in 15.5: five standard deviations are 0.012 of 0.065.
    assert 1 / figures["odds_coin_one_in"] == pytest.approx(1 / 15.5, abs=0.0125)
    assert figures["odds_default_exact_one_in"] > 400_000
    assert figures["opens_pair_share"] > 0.8
    medians = figures["medians"]
    assert medians["64 opens without a close"]["default"] is None
    assert medians["64 opens without a close"]["layered"] < 100


def test_throughput_is_at_least_half_of_a_bare_loop_and_a_hundred_times_hypothesis() -> None:
    figures = figures_of("throughput.py")
    assert figures["vs_bare"] >= 0.5
    assert figures["vs_hypothesis"] >= 100
    assert figures["two_workers"] > 0


def test_coverage_costs_tens_of_percents_and_sees_what_coverage_py_sees() -> None:
    """The goals are for full runs; a quick one, with everything new, has to come near them."""
    figures = figures_of("instrument.py", "--python-only")
    assert figures["differing_sets"] == 0
    assert figures["line_slowdown"] < 2.5
    if sys.version_info < (3, 12):  # since then, peers on sys.monitoring come near in long tests
        assert figures["best_peer_line"] > 2.5
    assert figures["branch_slowdown"] < 2.5
    assert figures["path_slowdown"] < 5


def test_native_coverage_is_an_order_of_magnitude_faster_than_gcov() -> None:
    for tool in ("gcc", "gcov", "addr2line"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}: apt-get install gcc binutils")
    figures = figures_of("native_coverage.py")
    assert figures["native_vs_gcov"] >= 10


def test_suites_of_packages_end_the_same_and_reach_the_same_under_swarmtest() -> None:
    figures = figures_of("packages.py")
    assert figures["packages"] >= 3
    assert figures["verdict_changes"] == 0
    assert figures["unexplained_line_differences"] == 0
    assert figures["unexplained_branch_differences"] == 0


def test_covering_arrays_are_covering_and_small() -> None:
    figures = figures_of("covering.py")
    assert figures["all_verified"]
    assert figures["worst_vs_best_known"] <= 1.25
    assert figures["worst_vs_nist"] <= 1.0
    assert figures["rows_23_5"] <= 136


def test_roles_are_counted_fast_and_wrong_ones_are_rare() -> None:
    figures = figures_of("roles.py")
    assert figures["same_results"]
    assert figures["vs_statsmodels"] >= 10
    # About 4,000 cells, of which the correction lets far fewer than one in twenty through.
    assert figures["wrong_role_rate"] < 0.02
    assert figures["wrong_role_rate_raw"] < 0.1
    assert figures["found_rate_trigger_coin_1000"] > 0.5


def test_compilers_are_compared_at_equal_cpu_time() -> None:
    for tool in ("csmith", "gcc", "clang", "dpkg-source"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}: apt-get install csmith gcc clang dpkg-dev")
    figures = figures_of("compilers.py", "--repeats", "2", "--cpu-seconds", "2")
    if not figures.get("measured", True):
        pytest.skip("needs tcc built from Debian's source: sh tools/tcc.sh")
    # A run ends with the test that uses up its time, and a test takes some 2 seconds, at most 60.
    assert min(figures["cpu_seconds"]) >= 4
    assert figures["tests_swarm"] >= 2
    # tcc goes through some 2,900 of its lines for csmith.h alone.
    assert min(figures["lines_swarm"], figures["lines_default"]) > 2_500
    assert 0 <= figures["masked_swarm"] <= 1


def test_a_campaign_over_commands_costs_little_more_than_calling_them() -> None:
    figures = figures_of("commands.py")
    assert figures["vs_bare_cpu"] > 0.5


def test_grammars_are_grown_faster_than_by_their_peers() -> None:
    figures = figures_of("grammars.py")
    assert figures["vs_grammarinator"] > 1
    assert figures["vs_hypothesis"] > 10
    # What is on can appear: of some 4,000 features that are on, none is without effect.
    assert figures["without_effect"]["constrained_0.5"] < 0.01
    assert figures["without_effect"]["free_0.5"] > 0.3


def test_state_machines_of_hypothesis_run_faster_and_need_fewer_tests() -> None:
    figures = figures_of("hypothesis_swarm.py")
    assert figures["vs_hypothesis_cpu"] > 2
    assert figures["vs_hypothesis_steps_per_second"] > 2
    medians = figures["medians"]
    assert medians["32 files open at once"]["default"] is None
    assert medians["32 files open at once"]["layered"] < 50


def test_directed_tests_hit_their_targets_more_often_than_undirected_ones() -> None:
    pytest.importorskip("pyfakefs", reason="needs pyfakefs: pip install pyfakefs")
    figures = figures_of("directed.py")
    # The tests are the same in every run: the seeds are fixed, and time decides nothing here.
    assert figures["api_ratio"] > 2
    assert figures["adaptive_vs_best"] > 0
    assert set(figures["subjects"]["api"]["size_1"]) >= {"adaptive", "portfolio", "default"}


def test_merging_is_exact_and_quick() -> None:
    figures = figures_of("merging.py", "--no-z3")
    assert figures["proven_share_100"] == 1
    assert figures["exact_100_seconds"] < 0.5  # goal: 0.1, on a machine of one's own
    assert figures["random_excess_400"] > 0


def test_mutants_are_switched_in_the_running_program() -> None:
    figures = figures_of("mutation.py")
    assert figures["differing_verdicts"] == 0
    assert figures["score"] > 0.9
    assert figures["mutants_per_second"] > 15


def test_reduction_takes_fewer_calls_than_delta_debugging() -> None:
    figures = figures_of("reduction.py", "--no-questions")
    assert figures["calls_vs_ddmin"] < 0.5
