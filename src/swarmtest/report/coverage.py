"""What a campaign's tests reached, as tables and annotated source for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np

from swarmtest.errors import UserError, did_you_mean
from swarmtest.instrument.kinds import KINDS, WITH_PROBES
from swarmtest.instrument.tally import Tally
from swarmtest.report.terminal import plural, table
from swarmtest.store import Store
from swarmtest.targets import Target, unpack_hits


def campaign_tally(store: Store, campaign: int, named_tests: bool = False) -> Tally:
    """What the tests of a campaign reached, added up; tests whose coverage is missing left out.

    `named_tests`: also which test hit what, under names like ``trial 17``.
    """
    tally = Tally()
    record = store.campaign(campaign)
    targets = store.watched_targets(campaign)
    if not targets:
        return tally
    counts = np.zeros(max(targets, default=0) + 1, np.int64)
    # Another campaign may have watched the same files for other kinds.
    kinds = (record.options.get("coverage") or {}).get("kinds", ["line"])
    place = {id: tally.catalogue.number(t) for id, t in targets.items() if t.kind in kinds}
    for trial in store.trials(campaign):
        if not trial.hits or trial.missing:
            continue
        ids = np.array(unpack_hits(trial.hits))
        ids = ids[ids < len(counts)]
        counts[ids] += 1
        if named_tests:
            tally.tests[f"trial {trial.trial}"] = [place[id] for id in ids.tolist() if id in place]
    for id, number in place.items():
        if counts[id]:
            tally.counts[number] = int(counts[id])
    if record.outside:
        tally.outside = {place[id] for id in unpack_hits(record.outside) if id in place}
    return tally


def coverage_line(tally: Tally) -> str:
    """One line for the end of a run: ``coverage: line 40 of 52 (77%)``."""
    return f"coverage: {tally.summary()}" if tally.catalogue.targets else ""


def coverage_lines(tally: Tally, command: str) -> list[str]:
    """The end of a run that collected coverage."""
    line = coverage_line(tally)
    return [line, f"  by file: {command}"] if line else ["coverage: nothing was watched"]


def coverage_table(tally: Tally) -> str:
    """A row per file: how much of each kind was reached, and the lines that were not."""
    kinds = [kind for kind in KINDS if kind in tally.shares()]
    files = sorted({target.file for target in tally.catalogue.targets if target.file})
    rows = []
    for file in files:
        shares = tally.shares(file)
        cells = [_share(kind, *shares.get(kind, (0, 0))) for kind in kinds]
        rows.append((file, *cells, _spans(_missed_lines(tally, file))))
    total = tally.shares()
    if len(rows) > 1:
        rows.append(("all", *(_share(kind, *total[kind]) for kind in kinds), ""))
    return table(("file", *kinds, "lines not reached"), rows)


def _share(kind: str, hit: int, known: int) -> str:
    if kind not in WITH_PROBES:
        return f"{hit}"
    return f"{hit} of {known} ({hit / known:.0%})" if known else "-"


def _missed_lines(tally: Tally, file: str) -> list[int]:
    return sorted(
        target.line
        for number, target in enumerate(tally.catalogue.targets)
        if target.kind == "line" and target.file == file and not tally.reached(number)
    )


def _spans(lines: Iterable[int]) -> str:
    """``3-5, 9``.

    >>> _spans([3, 4, 5, 9])
    '3-5, 9'
    """
    parts = []
    for _, run in groupby(enumerate(lines), lambda pair: pair[1] - pair[0]):
        numbers = [line for _, line in run]
        parts.append(f"{numbers[0]}-{numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}")
    return ", ".join(parts)


def annotated_source(store: Store, campaign: int, tally: Tally, file: str) -> str:
    """A file as it was tested, with the number of tests that reached each line."""
    sources = {source.path: source for source in store.sources(campaign)}
    if file not in sources:
        known = ", ".join(sources) or "none"
        raise UserError(
            f"campaign {campaign} watched no file {file!r}{did_you_mean(file, sources)}; "
            f"it watched: {known}"
        )
    if not sources[file].text:
        raise UserError(f"{file} was watched without its source")
    counts: dict[int, str] = {}
    for number, target in enumerate(tally.catalogue.targets):
        if target.kind == "line" and target.file == file:
            count = tally.counts[number]
            counts[target.line] = f"{count:,}" if count else _by_import(tally, number)
    lines = sources[file].text.splitlines()
    width = max(map(len, [*counts.values(), "tests"]))
    head = f"{'tests':>{width}}  line"
    shown = [
        f"{counts.get(i, ''):>{width}}  {i:>4}  {line}".rstrip() for i, line in enumerate(lines, 1)
    ]
    return "\n".join([head, *shown])


def _by_import(tally: Tally, number: int) -> str:
    return "import" if number in tally.outside else "-"


def target_rows(tally: Tally, tests: int) -> list[tuple[str, ...]]:
    """Every target with the number and share of tests that hit it, the rarest first."""
    order = sorted(
        enumerate(tally.catalogue.targets), key=lambda pair: (tally.counts[pair[0]], pair[1].name)
    )
    return [_target_row(tally, number, target, tests) for number, target in order]


def _target_row(tally: Tally, number: int, target: Target, tests: int) -> tuple[str, ...]:
    count = tally.counts[number]
    share = f"{count / tests:.1%}" if count and tests else ""
    shown = f"{count:,}" if count else _by_import(tally, number)
    return (str(target), shown, share, target.function, target.detail)


def missing_line(store: Store, campaign: int) -> str:
    """How many tests have no coverage, and why; empty when all have."""
    reasons: dict[str, int] = {}
    for trial in store.trials(campaign):
        if trial.missing:
            reasons[trial.missing] = reasons.get(trial.missing, 0) + 1
    return "; ".join(
        f"coverage of {plural(count, 'test')} is missing: {why}" for why, count in reasons.items()
    )
