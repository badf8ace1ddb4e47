"""A small run of the benchmarks about strategies and aim."""

from __future__ import annotations

import pytest
from quick_runs import figures_of


def test_detection_finds_the_papers_odds_for_a_swarm() -> None:
    figures = figures_of("detection.py")
    # 10,000 tests at 1 in 15.5: five standard deviations are 0.012 of 0.065.
    assert 1 / figures["odds_coin_one_in"] == pytest.approx(1 / 15.5, abs=0.0125)
    assert figures["odds_all_on_exact_one_in"] > 400_000
    assert figures["opens_pair_share"] > 0.8
    medians = figures["medians"]
    assert medians["64 opens without a close"]["all-on"] is None
    assert medians["64 opens without a close"]["layered"] < 100
    assert figures["layered_found_everywhere"]


def test_covering_arrays_are_covering_and_small() -> None:
    figures = figures_of("covering.py")
    assert figures["all_verified"]
    assert figures["worst_vs_best_known"] <= 1.25
    assert figures["worst_vs_nist"] <= 1.0
    assert figures["rows_23_5"] <= 136


def test_roles_agree_with_statsmodels_and_wrong_ones_are_rare() -> None:
    figures = figures_of("roles.py", python=("-W", "error::RuntimeWarning"))
    assert figures["same_results"]
    assert figures["seconds_100k_64_20k"] > 0
    # Some 1,700 cells, of which the correction lets far fewer than one in twenty through.
    assert figures["wrong_role_rate"] < 0.02
    assert figures["wrong_role_rate_raw"] < 0.1
    assert figures["found_rate_trigger_coin_1000"] > 0.5


def test_features_of_a_grammar_can_appear_when_they_are_on() -> None:
    figures = figures_of("grammars.py")
    # What is on can appear: of some 4,000 features that are on, none is without effect.
    assert figures["without_effect"]["constrained_0.5"] < 0.01
    assert figures["without_effect"]["free_0.5"] > 0.3


def test_state_machines_of_hypothesis_need_fewer_tests() -> None:
    figures = figures_of("hypothesis_swarm.py")
    medians = figures["medians"]
    assert medians["32 files open at once"]["all-on"] is None
    assert medians["32 files open at once"]["layered"] < 50


def test_directed_tests_hit_their_targets_more_often_than_undirected_ones() -> None:
    figures = figures_of("directed.py")
    # Seeds are fixed, and targets are chosen by their names: the ratios are about 4 and 5.
    assert figures["api_ratio"] > 2
    assert figures["c_ratio"] > 1
    assert figures["adaptive_vs_best"] > 0
    # Simulated tests and their costs follow from seeds.
    assert figures["simulated_vs_best"] > 0.9
    for subject in ("api", "c"):
        assert figures["subjects"][subject]["size_1"].keys() >= {"adaptive", "portfolio", "all-on"}


def test_changed_lines_of_real_releases_are_hit_or_said_to_be_out_of_reach() -> None:
    figures = figures_of("diffs.py", "--only", "jsonpatch")
    assert (figures["pairs"], figures["failed"]) == (1, 0)
    assert figures["changed"] > 0


def test_directed_tests_are_compared_on_real_faults() -> None:
    figures = figures_of("directed_faults.py")
    assert figures["faults"] == 1
    assert figures["best_mean_improvement"] > 0


def test_merging_is_exact() -> None:
    figures = figures_of("merging.py", "--no-z3")
    assert figures["proven_share_100"] == 1
    assert figures["random_excess_400"] > 0
