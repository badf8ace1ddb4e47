"""The head of a page: totals, campaigns and faults as tables."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from swarmtest.analysis.study import Study
from swarmtest.report.fault_views import MOST_FAULTS, KnownFault
from swarmtest.report.page_coverage import Coverage
from swarmtest.report.page_tables import Cell, Table, number_cell, percent, percent_cell
from swarmtest.report.quantities import duration
from swarmtest.store import CampaignRecord, Store


def totals_of(
    study: Study, faults: Sequence[KnownFault], coverage: Coverage
) -> tuple[tuple[str, str], ...]:
    """The numbers that a reader looks for first, each with its name."""
    evidence = study.evidence
    failing = int((evidence.fault >= 0).sum())
    totals = [
        ("tests", f"{evidence.n:,}"),
        ("distinct faults", f"{len(faults):,}"),
        ("tests that fail", f"{failing:,} ({percent(failing / evidence.n)})"),
        ("features", f"{len(evidence.features):,}"),
        ("CPU time of tests", duration(float(evidence.cpu_seconds.sum()))),
    ]
    for kind in ("line", "branch"):
        shares = [one.shares[kind] for one in coverage.listings if kind in one.shares]
        if shares:
            hit, known = (sum(part) for part in zip(*shares, strict=True))
            totals.append((f"{kind} coverage", f"{percent(hit / known)} of {known:,}"))
    return tuple(totals)


def campaign_table(store: Store, records: Sequence[CampaignRecord]) -> Table:
    """A row per campaign."""
    rows = []
    for record in records:
        summary = store.summary(record.id)
        created = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M")
        rows.append(
            (
                number_cell(record.id),
                Cell(created),
                Cell(record.label, cls="name"),
                Cell(str(record.seed), float(record.seed)),
                Cell(record.status),
                number_cell(summary["trials"]),
                number_cell(summary["failed"]),
                number_cell(summary["invalid"]),
                number_cell(summary["steps"]),
                Cell(duration(summary["cpu_ns"] / 1e9), summary["cpu_ns"]),
                Cell(str(record.options.get("python", "?"))),
            )
        )
    head = ("campaign", "begun", "strategy", "seed", "status", "tests", "failed", "invalid")
    return Table("Campaigns", (*head, "steps", "CPU in tests", "Python"), tuple(rows))


def fault_table(faults: Sequence[KnownFault], study: Study) -> Table:
    """A row per fault."""
    tests = study.evidence.n
    rows = [
        (
            Cell(
                fault.record.id,
                cls="name",
                link=f"#fault-{fault.record.id}" if place < MOST_FAULTS else "",
            ),
            Cell(fault.record.kind),
            number_cell(fault.count),
            percent_cell(fault.count / tests),
            number_cell(fault.size),
            Cell("{}#{}".format(*fault.first)),
            Cell(", ".join(f"{number}: {count:,}" for number, count in fault.counts.items())),
            Cell(fault.record.signature, cls="wide"),
        )
        for place, fault in enumerate(faults)
    ]
    left = len(faults) - MOST_FAULTS
    note = f"The {left} rarest are told of in this table only." if left > 0 else ""
    head = ("fault", "kind", "tests", "share", "smallest, steps", "first test", "by campaign")
    return Table("Faults, the most frequent first", (*head, "signature"), tuple(rows), note)
