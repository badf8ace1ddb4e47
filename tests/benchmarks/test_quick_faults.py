"""A small run of the benchmarks about real faults, and tests made from them."""

from __future__ import annotations

from quick_runs import figures_of


def test_triggers_agree_with_changelogs() -> None:
    figures = figures_of("known_bugs.py")
    assert figures["found"] == figures["gone_after_fix"] == figures["bugs"] >= 2
    assert figures["mean_precision"] > 0.5


def test_values_as_features_find_a_known_bug() -> None:
    figures = figures_of("value_features.py")
    assert figures["judged_found_values"] == 1


def test_failures_are_told_apart_as_their_bugs_are() -> None:
    figures = figures_of("identity.py")
    for half in ("", "tuning_", "earlier_"):
        assert figures[f"{half}pair_precision"] > 0.9
        assert figures[f"{half}pair_recall"] > 0.8
    assert figures["tuning_hidden"] == figures["earlier_hidden"] == 0
    assert figures["hidden"] <= figures["hypothesis_hidden"]


def test_known_bugs_are_found_with_a_few_lines() -> None:
    figures = figures_of("hunt.py")
    assert figures["found"] == figures["bugs"] == 1
    assert figures["lines_per_bug"] <= 10
    assert figures["api_false_alarms_per_class"] == 0


def test_rare_bugs_are_explained_from_one_failing_test() -> None:
    figures = figures_of("why.py")
    assert figures["found"] == figures["bugs"] >= 2
    assert figures["explained"] == 1
    assert figures["precision"] > 0.5


def test_compilers_are_compared_at_equal_cpu_time() -> None:
    figures = figures_of("compilers.py")
    # A run ends with the test that uses up its time, and a test takes some 2 seconds, at most 60.
    assert min(figures["cpu_seconds"]) >= 2
    assert figures["tests_swarm"] >= 2
    # tcc goes through some 2,900 of its lines for csmith.h alone.
    assert min(figures["lines_swarm"], figures["lines_all_on"]) > 2_500
    assert 0 <= figures["masked_swarm"] <= 1


def test_reduction_takes_fewer_calls_than_any_other_reducer() -> None:
    """The seeds are fixed, and time decides nothing here."""
    figures = figures_of("reduction.py", "--no-questions")
    assert figures["calls_vs_ddmin"] < 0.5
    assert figures["calls_vs_best_peer"] < 1
    assert figures["size_vs_best_peer"] < 1.05  # goal: 1, of more than 5 seeds


def test_what_reduced_tests_keep_is_more_than_chance_keeps() -> None:
    figures = figures_of("reduction_study.py", "--subject", "red-black")
    (found,) = figures.values()
    assert found["medians"]["C% 100"]["cpr"] == 1
    assert found["medians"]["C% 70"]["srr"] > found["medians"]["C% 100"]["srr"] > 0.5
    assert found["tau"]["C% mpr"] > 0.3
    for rate in ("cpr", "mpr"):
        assert found["above_random"][rate] > 5 * found["below_random"][rate]


def test_a_suite_keeps_everything_in_fewer_steps() -> None:
    figures = figures_of("suites.py")
    assert figures["kept"] == figures["targets"]
    assert figures["proven"]
    assert figures["steps_of_campaign"] < 0.5
