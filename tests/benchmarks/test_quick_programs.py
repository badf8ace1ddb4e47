"""A small run of the benchmarks about what is watched and changed in programs."""

from __future__ import annotations

from quick_runs import figures_of


def test_coverage_sees_what_coverage_py_sees() -> None:
    figures = figures_of("instrument.py", "--python-only", without=("native_vs_gcov",))
    assert figures["differing_sets"] == 0


def test_native_coverage_names_lines_that_gcov_names() -> None:
    figures = figures_of("native_coverage.py")
    assert figures["comparable"] > 100
    assert figures["disagreements"] < 0.1 * figures["comparable"]


def test_crashes_of_c_programs_are_told_apart() -> None:
    figures = figures_of("native_identity.py")
    assert figures["sites"] >= 12
    assert (figures["merged_asan"], figures["split_asan"]) == (0, 0)
    assert figures["wrong_percent_plain"] <= 5


def test_suites_of_packages_end_the_same_and_reach_the_same_under_swarmtest() -> None:
    figures = figures_of("packages.py")
    assert figures["packages"] >= 3
    assert figures["verdict_changes"] == 0
    assert figures["unexplained_line_differences"] == 0
    assert figures["unexplained_branch_differences"] == 0


def test_mutants_are_switched_in_the_running_program() -> None:
    figures = figures_of("mutation.py")
    assert figures["differing_verdicts"] == 0
    assert figures["score"] > 0.9
    assert figures["vs_best_peer"] > 0


def test_swapped_code_and_schemata_give_the_same_verdicts() -> None:
    figures = figures_of("mutation_schemata.py")
    assert figures["differing"] == 0
    assert figures["runs"] > 1000


def test_verdicts_on_mutants_are_those_of_a_process_for_each() -> None:
    figures = figures_of("mutation_truth.py")
    assert figures["differing"] == 0
    assert figures["at_import"] > 0


def test_mutants_of_c_in_one_program_tell_what_a_program_for_each_tells() -> None:
    figures = figures_of("mutation_native.py")
    assert figures["differing_verdicts"] == 0
    assert figures["score"] > 0.5
