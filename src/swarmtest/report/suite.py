"""A suite as text for the terminal, and as plain data."""

from __future__ import annotations

from typing import Any

from swarmtest.report.quantities import duration, short_percent
from swarmtest.report.terminal import plural, table
from swarmtest.suites import SavedSuite, Suite, SuiteTest
from swarmtest.suites.naming import counted, name_of


def suite_text(suite: Suite, saved: SavedSuite | None, width: int = 0) -> str:
    """The tests with what each adds, and what they keep together."""
    part = suite.subject.part
    head = ("adds", f"{part}s", "of", "time", "test")
    rows = [
        (
            f"{len(one.adds):,}",
            f"{one.size:,}",
            f"{one.before:,}",
            duration(one.seconds) if one.seconds else "-",
            name_of(one),
        )
        for one in suite.tests
    ]
    parts = [table(head, rows, right="rrrr", width=width), "\n".join(_summary(suite))]
    if saved is not None:
        parts.append("\n".join(_written(saved)))
    told = [f"note: {note}" for note in suite.notes]
    told += [f"dropped: trial {trial}: {why}" for trial, why in suite.dropped if _matters(why)]
    parts += ["\n".join(told)] if told else []
    return "\n\n".join(parts)


def _matters(why: str) -> bool:
    return "kept by others" not in why


def _summary(suite: Suite) -> list[str]:
    part = suite.subject.part
    lines = [f"{plural(len(suite.tests), 'test')} of {suite.trials:,}{_kept(suite)}"]
    faults = {one.fault.id for one in suite.tests if one.fault is not None}
    if faults:
        lines.append(f"{plural(len(faults), 'fault')} shown: {', '.join(sorted(faults))}")
    lines.append(f"chosen: {plural(suite.chosen, 'whole test')} ({suite.method}), {_proof(suite)}")
    before, now = suite.parts
    lines.append(
        f"reduced: from {plural(before, part)} to {now:,} (SRR {short_percent(suite.srr)}), "
        f"from {duration(suite.seconds[0])} to {duration(suite.seconds[1])}; "
        f"all tests took {duration(suite.trials_seconds)}"
    )
    unfinished = sum(not one.complete for one in suite.tests)
    if unfinished:
        lines.append(f"{plural(unfinished, 'test')} could become smaller: --reduce-time gives time")
    return lines


def _proof(suite: Suite) -> str:
    if suite.proven:
        return "and fewer do not keep as much"
    if suite.at_least:
        return f"perhaps not the fewest: at least {suite.at_least:,} are needed"
    return "not known to be the fewest"


def _kept(suite: Suite) -> str:
    if not suite.targets:
        return "; nothing but faults was there to keep"
    verb = "keeps" if len(suite.tests) == 1 else "keep"
    told = [f"{kept:,} of {counted(all_, kind)}" for kind, (kept, all_) in suite.by_kind.items()]
    return (
        f" {verb} {len(suite.kept):,} of {plural(len(suite.targets), 'target')} "
        f"({short_percent(suite.share)}): {', '.join(told)}"
    )


def _written(saved: SavedSuite) -> list[str]:
    tests = saved.suite.tests
    faults = sum(one.fault is not None for one in tests)
    told = [f"{len(tests) - faults} passed"] if len(tests) > faults else []
    words = {"xfail": "failed as expected", "fail": "failed as they should", "skip": "skipped"}
    told += [f"{faults} {words[saved.suite.faults]}"] if faults else []
    need = "needs" if saved.needs_swarmtest else "does not need"
    return [
        f"written: {saved.path}, {', '.join(told)}, twice, in {duration(saved.seconds)}; "
        f"it {need} swarmtest"
    ]


def suite_data(suite: Suite, saved: SavedSuite | None) -> dict[str, Any]:
    """The same as dictionaries and lists."""
    return {
        "campaign": suite.campaign,
        "tests": [_test(one) for one in suite.tests],
        "targets": len(suite.targets),
        "kept": len(suite.kept),
        "by_kind": {
            kind: {"kept": kept, "targets": count} for kind, (kept, count) in suite.by_kind.items()
        },
        "trials": suite.trials,
        "trials_seconds": suite.trials_seconds,
        "chosen": suite.chosen,
        "chosen_kept": suite.chosen_kept,
        "method": suite.method,
        "at_least": suite.at_least or None,
        "proven": suite.proven,
        "parts": list(suite.parts),
        "seconds": list(suite.seconds),
        "srr": suite.srr,
        "dropped": [{"trial": trial, "reason": why} for trial, why in suite.dropped],
        "notes": list(suite.notes),
        "file": str(saved.path) if saved else None,
        "pytest_seconds": saved.seconds if saved else None,
        "needs_swarmtest": saved.needs_swarmtest if saved else None,
    }


def _test(test: SuiteTest) -> dict[str, Any]:
    return {
        "trial": test.trial,
        "name": name_of(test),
        "fault": test.fault.id if test.fault else None,
        "adds": [str(target) for target in test.adds],
        "hits": len(test.hits),
        "before": test.before,
        "size": test.size,
        "srr": test.srr,
        "seconds": test.seconds,
        "seconds_before": test.seconds_before,
        "complete": test.complete,
        "test": test.data,
    }
