"""What a campaign's tests reached, as tables and annotated source for a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.targets import Source, Target, unpack_hits
from swarmtest.coverage.kinds import CONCURRENT_KINDS, KINDS, WITH_PROBES
from swarmtest.coverage.scope import is_as_it_was, place_of
from swarmtest.coverage.totals import Tally
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.ui.terminal.tables import table
from swarmtest.ui.terminal.text import spans

ALL_KINDS = (*KINDS, *CONCURRENT_KINDS)
"""What lies in files: what tests execute, and what their threads do to each other there."""


def campaign_tally(
    store: Store, campaign: int, named_tests: bool = False, events: bool = False
) -> Tally:
    """What the tests of a campaign reached, added up; tests whose coverage is missing left out.

    `named_tests`: also which test hit what, under names like ``trial 17``. `events`: events that
    were hit are targets too.
    """
    record = store.campaign(campaign)
    tally = Tally(kinds=_kinds(record))
    watched = store.watched_targets(campaign)
    if not watched and not events:
        return tally
    import numpy as np  # most campaigns watch nothing

    tally.places = {one.path: one.place for one in store.sources(campaign) if one.place}
    counts = np.zeros(max(watched, default=0) + 1, np.int64)
    tests: dict[str, Any] = {}
    for trial in store.trials(campaign):
        if not trial.hits_are_known:
            tally.missing[trial.missing] += 1
        elif trial.hits:
            ids = np.array(unpack_hits(trial.hits), np.int64)
            if len(ids) and ids[-1] >= len(counts):
                counts = np.pad(counts, (0, int(ids[-1]) + 1 - len(counts)))
            counts[ids] += 1
            if named_tests:
                own_name = trial.origin if record.imported_from else ""
                tests[own_name or f"trial {trial.trial}"] = ids
    outside = set(unpack_hits(record.outside)) if record.outside else set()
    hit = {*np.flatnonzero(counts).tolist(), *outside}
    own = {id: t for id, t in watched.items() if _is_own(t, tally.kinds, id in hit)}
    if events:
        named = store.targets(sorted(hit - watched.keys()))
        own |= {id: target for id, target in named.items() if not target.source}
    place = {id: tally.catalogue.number(target) for id, target in own.items()}
    hits = counts.tolist()
    tally.counts.update({place[id]: hits[id] for id in place if id < len(hits) and hits[id]})
    tally.outside = {place[id] for id in outside & place.keys()}
    tally.tests = {
        name: [place[id] for id in ids.tolist() if id in place] for name, ids in tests.items()
    }
    return tally


def _kinds(record: CampaignRecord) -> tuple[str, ...]:
    """The kinds that tests were asked for; those of a search say themselves what they watch."""
    if "search" in record.options:
        return tuple(KINDS)
    return tuple((record.options.get("coverage") or {}).get("kinds", ["line"]))


def _is_own(target: Target, kinds: Iterable[str], hit: bool) -> bool:
    """Whether a target is this campaign's: others may have watched the same files.

    They may have asked for other kinds, and have found other paths on their way.
    """
    if target.kind in CONCURRENT_KINDS:
        return hit
    return target.kind in kinds and (hit or target.kind in WITH_PROBES)


def nothing_watched(record: CampaignRecord) -> str:
    """Why a campaign has no coverage."""
    asked = record.options.get("coverage")
    if "search" in record.options:
        return (
            f"campaign {record.id} is a search whose tests name no files; what they reached: "
            f"`swarmtest coverage {record.id} --targets`"
        )
    if not asked:
        race = record.subject.startswith("race ")
        kinds = "pair,sync,shared` (or line, ...)" if race else "line` (or branch, path, ...)"
        return f"campaign {record.id} collected no coverage: run it with `--coverage {kinds}"
    cover = " ".join(f"--cover {name}" for name in asked.get("cover", ()))
    why = (
        f"the subject imported nothing that {cover} names"
        if cover
        else "the subject imported no module of its own directory or the current one; name "
        "modules with --cover"
    )
    return f"campaign {record.id} watched nothing: {why}"


def coverage_lines(tally: Tally, command: str) -> list[str]:
    """The end of a run that collected coverage: ``coverage: line 40 of 52 (77%)``, and more."""
    if not tally.catalogue.targets:
        return ["coverage: nothing was watched"]
    missing = [f"  {line}" for line in tally.missing_lines()]
    return [f"coverage: {tally.summary()}", *missing, f"  by file: {command}"]


def coverage_table(tally: Tally, width: int = 0) -> str:
    """A row per file: how much of each kind was reached, and the lines that were not."""
    kinds = [kind for kind in ALL_KINDS if kind in tally.shares()]
    lines = any(kind in KINDS for kind in kinds)
    files = sorted({target.file for target in tally.catalogue.targets if target.file})
    rows = []
    for file in files:
        shares = tally.shares(file)
        cells = [_share(kind, *shares.get(kind, (0, 0))) for kind in kinds]
        rows.append((file, *cells, *([spans(_missed_lines(tally, file))] if lines else [])))
    total = tally.shares()
    if len(rows) > 1:
        rows.append(("all", *(_share(kind, *total[kind]) for kind in kinds), *[""] * lines))
    head = ("file", *kinds, *["lines not reached"] * lines)
    return table(head, rows, width=width)


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


def find_source(store: Store, campaign: int, file: str) -> Source:
    """A watched file, by its name in reports, its place, or the end of a path that only it has."""
    sources = {source.path: source for source in store.sources(campaign)}
    plain = os.path.normpath(file)
    if plain in sources:
        return sources[plain]
    here = [one for one in sources.values() if place_of(one) == os.path.realpath(file)]
    ends = [one for path, one in sources.items() if f"/{path}".endswith(f"/{plain}")]
    found = here or ends
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{file} is one of {', '.join(one.path for one in found)}: say which")
    known = ", ".join(sources) or "none"
    raise UserError(
        f"campaign {campaign} watched no file {file!r}{did_you_mean(file, sources)}; "
        f"it watched: {known}"
    )


def annotated_source(source: Source, tally: Tally) -> str:
    """A file as it was tested, with the number of tests that reached each line."""
    if not source.text:
        raise UserError(f"{source.path} was watched without its source")
    counts: dict[int, str] = {}
    for number, target in enumerate(tally.catalogue.targets):
        if target.kind == "line" and target.file == source.path:
            count = tally.counts[number]
            counts[target.line] = f"{count:,}" if count else _by_import(tally, number)
    lines = source.text.removesuffix("\n").split("\n")
    width = max(map(len, [*counts.values(), "tests"]))
    head = f"{'tests':>{width}}  line"
    shown = [
        f"{counts.get(i, ''):>{width}}  {i:>4}  {line}".rstrip() for i, line in enumerate(lines, 1)
    ]
    return "\n".join([head, *shown])


def _by_import(tally: Tally, number: int) -> str:
    return "import" if number in tally.outside else "-"


def changed_line(sources: Iterable[Source], campaign: int, done: str) -> str:
    """That files are not any more what was tested; empty when all are. `done`: what is told."""
    changed = [source.path for source in sources if not is_as_it_was(source)]
    if not changed:
        return ""
    more = f" and {len(changed) - 1} more have" if len(changed) > 1 else " has"
    return f"{changed[0]}{more} changed since campaign {campaign}; {done} is what was tested"


def target_rows(
    tally: Tally, tests: int, kind: str = "", file: str = "", unreached: bool = False
) -> list[tuple[str, ...]]:
    """Targets with the number and share of tests that hit each, the rarest first.

    `tests` is how many have coverage; `kind`, `file` and `unreached` leave others out.
    """
    chosen = [
        (number, target)
        for number, target in enumerate(tally.catalogue.targets)
        if kind in ("", target.kind)
        and file in ("", target.file)
        and not (unreached and tally.reached(number))
    ]
    chosen.sort(key=lambda pair: (tally.counts[pair[0]], _in_order(pair[1])))
    return [_target_row(tally, number, target, tests) for number, target in chosen]


def _in_order(target: Target) -> tuple[Any, ...]:
    """By file and line, and numbers within names by their size."""
    parts = re.split(r"([0-9]+)", target.name)
    return target.file, target.line, [(int(p), "") if p.isdigit() else (-1, p) for p in parts]


def _target_row(tally: Tally, number: int, target: Target, tests: int) -> tuple[str, ...]:
    count = tally.counts[number]
    share = f"{count / tests:.1%}" if count and tests else ""
    shown = f"{count:,}" if count else _by_import(tally, number)
    return (str(target), shown, share, target.function, target.detail)
