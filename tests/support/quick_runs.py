"""A small run of every benchmark: it works, shows progress, and prints its figures.

How fast something is belongs to the benchmarks. These tests assert what holds on any machine, at
any load: counts, verdicts and results that follow from seeds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LONGEST = 1800
"""Seconds after which a quick run hangs: generous, because the machine may be busy."""
CANNOT = re.compile(r"^\S+ cannot measure here: (.*)$", re.MULTILINE)
KEYS: dict[str, tuple[str, ...]] = {
    "chaos.py": (
        *("kills", "trials", "lost", "duplicated", "different", "orphans"),
        *("kills_campaign", "kills_host", "kills_child", "kills_nanny", "kills_worker"),
        *("kills_scheduler", "kills_database", "kills_connection"),
    ),
    "commands.py": ("vs_bare_cpu", "vs_tuned_cpu"),
    "compilers.py": (
        *("lines_only_swarm", "lines_only_all_on", "faults_only_swarm", "faults_only_all_on"),
        *("masked_swarm", "masked_all_on"),
    ),
    "covering.py": ("worst_vs_best_known", "worst_vs_nist", "rows_23_5"),
    "detection.py": (
        *("layered_worst_ratio", "odds_coin_one_in"),
        *("unseen_worst_ratio", "unseen_mean_ratio"),
    ),
    "diffs.py": (
        *("pairs", "changed", "reached", "focus_share", "undirected_share", "pytest_share"),
        *("machine_focus_share", "said_unreachable", "said_wrongly"),
    ),
    "directed.py": (
        *("api_ratio", "c_ratio", "adaptive_vs_best", "adaptive_vs_best_interval"),
        *("adaptive_vs_best_least", "simulated_vs_best", "simulated_vs_best_interval"),
        *("simulated_vs_best_least", "tuning_vs_best"),
    ),
    "directed_faults.py": ("best", "best_mean_improvement"),
    "grammars.py": ("vs_grammarinator", "vs_hypothesis", "swarm_vs_default_rate"),
    "hostile.py": ("inputs", "tracebacks", "hangs", "executed", "escapes", "orphans"),
    "hunt.py": (
        *("found", "bugs", "lines_per_bug", "false_alarms_per_bug", "api_false_alarms_per_class"),
    ),
    "hypothesis_swarm.py": ("vs_hypothesis_tests", "vs_hypothesis_cpu"),
    "identity.py": ("groups", "bugs", "hidden", "pair_precision", "pair_recall"),
    "instrument.py": ("line_slowdown", "branch_slowdown", "path_slowdown", "native_vs_gcov"),
    "interrupts.py": tuple(f"ctrl_c_{case}_s" for case in ("busy", "hanging", "again", "locked")),
    "known_bugs.py": ("found", "mean_precision", "mean_recall", "gone_after_fix"),
    "merging.py": ("exact_100_seconds", "exact_400_seconds", "proven_share_100"),
    "million.py": (
        *("show_s", "faults_s", "roles_fault_s", "roles_line_s", "growth_s", "report_s"),
        *("bytes_per_test", "bytes_per_test_plain", "peak_mb", "dashboard_page_s"),
        *("export_s", "dashboard_live_page_s", "dashboard_live_events"),
    ),
    "mutation.py": ("vs_best_peer", "differing_verdicts"),
    "mutation_native.py": ("vs_one_by_one", "differing_verdicts"),
    "mutation_schemata.py": ("schemata_vs_swap", "differing"),
    "mutation_truth.py": ("agreement", "differing"),
    "native_coverage.py": (
        *("native_vs_gcov", "new_process_vs_gcov", "inprocess_vs_bare", "vs_libfuzzer_execs"),
    ),
    "native_identity.py": ("sites", "merged_asan", "split_asan", "wrong_percent_plain"),
    "packages.py": ("verdict_changes", "unexplained_line_differences"),
    "race.py": (
        "vs_best_peer_min",
        "default_vs_best_peer_min",
        "unseen_default_vs_best_peer_min",
        "comprehension_found",
        "infeasible_reports",
        "asyncio_found",
    ),
    "race_after_noise.py": ("mean_runs", "around_vs_anywhere"),
    "race_feasible.py": ("programs", "label_wrong"),
    "race_minimal.py": ("schedules", "not_minimal"),
    "race_native.py": ("vs_best_bare_min", "slow_down"),
    "race_real.py": ("real_found", "real_total"),
    "race_slowdown.py": ("pair_slowdown",),
    "reduction.py": ("calls_vs_ddmin", "calls_vs_best_peer", "size_vs_best_peer"),
    "reduction_study.py": ("red-black tree (Python)",),
    "roles.py": ("vs_statsmodels", "seconds_100k_64_20k", "wrong_role_rate"),
    "scale.py": (
        *("two_workers", "dask_overhead_us", "sqlite_per_second", "postgresql_per_second"),
        *("dask_overhead_ms", "dask_overhead_cpu_ms", "counting"),
    ),
    "search.py": ("random_vs_best_min", "hill_wins", "replay_vs_live"),
    "startup.py": ("help_cpu_s", "list_cpu_s", "run_cpu_s", "import_cpu_s", "own_modules_list"),
    "store_speed.py": (
        *("sqlite_write_per_second", "postgres_write_per_second", "copy_per_second"),
        *("postgres_vs_sqlite", "batches_vs_sqlite", "blocks_vs_sqlite", "blocks_vs_copy"),
    ),
    "suites.py": ("time_vs_greedy", "kept_vs_random"),
    "throughput.py": (
        *("vs_bare", "vs_hypothesis", "two_workers", "two_workers_by_cpu", "layered_vs_coin"),
    ),
    "value_features.py": (
        *("bugs", "judged_speedup_values", "judged_speedup_lengths", "judged_found_values"),
    ),
    "why.py": ("explained", "precision", "recall", "cpu_s_per_fault"),
}
"""What each benchmark prints, also with ``--quick``: what issues name, and what the docs show."""


def figures_of(
    name: str, *options: str, without: tuple[str, ...] = (), python: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Run a benchmark, check its form, and give its figures.

    `without`: keys of the table that the options leave out; `python`: options of the interpreter.
    """
    done = subprocess.run(
        [sys.executable, *python, str(BENCHMARKS / name), "--quick", *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    if done.returncode == 2 and (reason := CANNOT.search(done.stderr)):
        pytest.skip(reason[1])
    assert done.returncode == 0, done.stderr
    print(done.stdout)  # pytest shows it where a figure is not as expected
    assert re.search(r"^  \S", done.stderr, re.MULTILINE), "progress is shown on standard error"
    *table, last = done.stdout.strip().splitlines()
    assert len(table) > 3, "a benchmark prints a table that a person can read"
    figures: dict[str, Any] = json.loads(last)
    missing = [key for key in KEYS[name] if figures.get(key) is None and key not in without]
    assert not missing, f"{name} --quick does not measure {missing}"
    return figures


def scripts() -> set[str]:
    """The benchmarks: scripts that know ``--quick``."""
    found = {path.name: path.read_text() for path in BENCHMARKS.glob("*.py")}
    return {
        name
        for name, text in found.items()
        if '__name__ == "__main__"' in text and ('"--quick"' in text or "arguments(__doc__" in text)
    }
