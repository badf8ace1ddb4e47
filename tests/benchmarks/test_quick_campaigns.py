"""A small run of the benchmarks about what campaigns and their stores cost."""

from __future__ import annotations

from quick_runs import KEYS, figures_of


def test_throughput_is_measured_beside_bare_loops_and_hypothesis() -> None:
    figures = figures_of("throughput.py")
    assert min(figures[key] for key in KEYS["throughput.py"]) > 0


def test_every_command_answers_about_a_campaign_like_that_of_a_million_tests() -> None:
    figures = figures_of("million.py", "--tests", "500")
    assert figures["tests"] == 500
    assert figures["bytes_per_test"] > figures["bytes_per_test_plain"] > 0


def test_a_campaign_over_commands_is_measured_beside_calling_them() -> None:
    assert figures_of("commands.py")["vs_bare_cpu"] > 0


def test_large_analyses_stay_small_and_both_stores_take_trials() -> None:
    figures = figures_of("scale.py")
    few, many = figures["counting"].values()
    assert many["hits"] > 3 * few["hits"]
    # Bools of 8,000 tests by 5,000 targets would be 38 MB, those of the columns 10.
    assert many["megabytes"] - few["megabytes"] < 100


def test_both_stores_are_measured() -> None:
    figures = figures_of("store_speed.py")
    assert min(figures[key] for key in KEYS["store_speed.py"]) > 0


def test_commands_start_with_few_modules() -> None:
    figures = figures_of("startup.py")
    assert figures["own_modules_list"] <= 60
