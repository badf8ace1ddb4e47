"""What a campaign's tests reached, as tables and annotated source for a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import format_percent
from swarmtest.core.targets import Source, Target, unpack_hits
from swarmtest.coverage.kinds import CONCURRENT_KINDS, KINDS, WITH_PROBES
from swarmtest.coverage.scope import is_as_it_was, place_of
from swarmtest.coverage.totals import Tally
from swarmtest.languages.source import is_c
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.ui.terminal.tables import table
from swarmtest.ui.terminal.text import folded_spans

ALL_KINDS = (*KINDS, *CONCURRENT_KINDS)
"""The kinds of targets that lie in files: what tests execute, and how their threads interact."""
_ROOM, _LEAST_ROOM, _KIND_ROOM = 300, 30, 24
"""Characters for the lines that were not reached, without a screen and on one, and for a kind."""
_SHOWN_FILES = 5
"""How many watched files are named in a summary."""


def campaign_tally(
    store: Store, campaign: int, named_tests: bool = False, events: bool = False
) -> Tally:
    """Return the sum of what the tests of a campaign reached, without tests of unknown coverage.

    With `named_tests`, the tally also has which test hit what, under names like ``trial 17``. With
    `events`, the events that were hit are targets too.
    """
    record = store.campaign(campaign)
    tally = Tally(kinds=_kinds(record))
    watched = store.watched_targets(campaign)
    if not watched and not events:
        return tally
    # Here, because most campaigns watch nothing, and this loads numpy.
    from swarmtest.analysis.block_reading import count_hits

    tally.places = {source.path: source.place for source in store.sources(campaign) if source.place}
    if "line" not in tally.kinds and any(map(is_c, tally.places)):
        tally.kinds = (*tally.kinds, "line")  # native code always has lines
    ids, counts, tally.missing = count_hits(store, campaign)
    hits = dict(zip(ids.tolist(), counts.tolist(), strict=True))
    outside = set(unpack_hits(record.outside)) if record.outside else set()
    hit = hits.keys() | outside
    own = {id: target for id, target in watched.items() if _is_own(target, tally.kinds, id in hit)}
    if events:
        named = store.targets(sorted(hit - watched.keys()))
        own |= {id: target for id, target in named.items() if not target.source}
    numbers = {id: tally.catalogue.number(target) for id, target in own.items()}
    tally.counts.update({number: hits[id] for id, number in numbers.items() if id in hits})
    tally.outside = {numbers[id] for id in outside & numbers.keys()}
    if named_tests:
        tally.tests = dict(_named_tests(store, record, numbers))
    return tally


def _named_tests(
    store: Store, record: CampaignRecord, numbers: Mapping[int, int]
) -> Iterator[tuple[str, list[int]]]:
    """Yield, for each test with hits, its name and the numbers of the targets that it hit."""
    for block in store.blocks(record.id):
        sets = zip(block.numbers.tolist(), block.hits.sets(), block.hits_known, strict=True)
        for at, (trial, ids, is_known) in enumerate(sets):
            if is_known and block.hit_states[at]:
                own_name = block.origins[block.origin_index[at]] if record.imported_from else ""
                hit = [numbers[id] for id in ids.tolist() if id in numbers]
                yield own_name or f"trial {trial}", hit


def _kinds(record: CampaignRecord) -> tuple[str, ...]:
    """Return the kinds that a campaign was asked to watch; all for a search, whose tests choose."""
    if "search" in record.options:
        return tuple(KINDS)
    return tuple((record.options.get("coverage") or {}).get("kinds", ["line"]))


def _is_own(target: Target, kinds: Iterable[str], is_hit: bool) -> bool:
    """Return whether a target belongs to this campaign.

    Other campaigns may have watched the same files for other kinds, and found other paths in them.
    """
    if target.kind in CONCURRENT_KINDS:
        return is_hit
    return target.kind in kinds and (is_hit or target.kind in WITH_PROBES)


def nothing_watched(record: CampaignRecord) -> str:
    """Return why a campaign has no coverage."""
    asked = record.options.get("coverage")
    if "search" in record.options:
        return (
            f"campaign {record.id} is a search whose tests report no files; what they reached: "
            f"`swarmtest coverage {record.id} --targets`"
        )
    if not asked:
        race = record.subject.startswith("race ")
        kinds = "pair,sync,shared` (or line, ...)" if race else "line` (or branch, path, ...)"
        return f"campaign {record.id} measured no coverage: run it with `--coverage {kinds}"
    cover = " ".join(f"--cover {name}" for name in asked.get("cover", ()))
    why = (
        f"the subject imported nothing that {cover} names"
        if cover
        else "the subject imported no module of its own directory or the current one; name "
        "modules with --cover"
    )
    return f"campaign {record.id} watched nothing: {why}"


def coverage_lines(tally: Tally, command: str, asked: Mapping[str, Any] | None) -> list[str]:
    """Return the summary of a run with coverage: ``coverage: line 40 of 52 (77%)``, and more.

    `asked` are the campaign's options of coverage, as stored.
    """
    if not tally.catalogue.targets:
        return ["coverage: nothing was measured"]
    told = [*watched_lines(tally, asked or {}), *tally.missing_lines(), f"by file: {command}"]
    native = {target.kind for target in tally.catalogue.targets if is_c(target.file)}
    others = [kind for kind in (asked or {}).get("kinds", ()) if kind not in native]
    if native and others:
        measured = "lines and branches" if "branch" in native else "lines only"
        told.insert(0, f"C and C++ are measured by {measured}, not by {', '.join(others)}")
    return [f"coverage: {tally.summary()}", *(f"  {line}" for line in told)]


def watched_lines(tally: Tally, asked: Mapping[str, Any]) -> list[str]:
    """Return which files were watched, and what was not watched although the subject imports it."""
    files = sorted({target.file for target in tally.catalogue.targets if target.file})
    shown = ", ".join(files[:_SHOWN_FILES])
    if len(files) > _SHOWN_FILES:
        shown += f" and {len(files) - _SHOWN_FILES:,} more"
    lines = [f"watched: {shown}"] if files else []
    if asked.get("cover"):
        return lines
    harness = asked.get("harness")
    if harness and files and all(tally.places.get(file) == harness for file in files):
        return [
            f"watched: {shown}; nothing to watch besides the test file itself: name the program "
            "with --cover"
        ]
    if asked.get("left_out"):
        names = asked["left_out"]
        more = f"not watched, because installed: {', '.join(names)} (--cover {names[0]})"
        return [*lines, more]
    return lines


def coverage_table(tally: Tally, width: int = 0) -> str:
    """Return a row per file: how much of each kind was reached, and the lines that were not."""
    kinds = [kind for kind in ALL_KINDS if kind in tally.shares()]
    has_lines = any(kind in KINDS for kind in kinds)
    files = sorted({target.file for target in tally.catalogue.targets if target.file})
    room = max(_LEAST_ROOM, width - max(map(len, files), default=0) - _KIND_ROOM * len(kinds))
    room = room if width else _ROOM
    rows = []
    for file in files:
        shares = tally.shares(file)
        cells = [_share(kind, *shares.get(kind, (0, 0))) for kind in kinds]
        rows.append((file, *cells, *([_missed_lines(tally, file, room)] if has_lines else [])))
    total = tally.shares()
    if len(rows) > 1:
        rows.append(("all", *(_share(kind, *total[kind]) for kind in kinds), *[""] * has_lines))
    head = ("file", *kinds, *["lines not reached"] * has_lines)
    return table(head, rows, width=width)


def _share(kind: str, hit: int, total: int) -> str:
    if kind not in WITH_PROBES:
        return f"{hit}"
    return f"{hit} of {total} ({format_percent(hit / total, 0)})" if total else "-"


def _missed_lines(tally: Tally, file: str, room: int) -> str:
    lines: tuple[set[int], set[int]] = (set(), set())
    for number, target in enumerate(tally.catalogue.targets):
        if target.kind == "line" and target.file == file:
            lines[tally.reached(number)].add(target.line)
    return folded_spans(lines[False], lines[True], room)


def find_source(store: Store, campaign: int, file: str) -> Source:
    """Return a watched file by its path in reports, its location, or a unique end of its path."""
    sources = {source.path: source for source in store.sources(campaign)}
    normal = os.path.normpath(file)
    if normal in sources:
        return sources[normal]
    at_location = [
        source for source in sources.values() if place_of(source) == os.path.realpath(file)
    ]
    by_ending = [source for path, source in sources.items() if f"/{path}".endswith(f"/{normal}")]
    matches = at_location or by_ending
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UserError(
            f"{file} is one of {', '.join(source.path for source in matches)}: give its path"
        )
    watched = ", ".join(sources) or "none"
    raise UserError(
        f"campaign {campaign} measured no file {file!r}{did_you_mean(file, sources)}; "
        f"it watched: {watched}"
    )


def find_function(tally: Tally, name: str) -> tuple[str, tuple[int, int]] | None:
    """Return the file of a function and its first and last line with code; None if it is unknown.

    The name may begin with the file: ``shop/cart.py:Cart.add``.
    """
    file, _, function = name.removesuffix("()").replace("::", ":").rpartition(":")
    places: dict[str, set[int]] = {}
    for target in tally.catalogue.targets:
        own = target.function == function or target.function.replace("::", ":") == name
        if target.kind == "line" and own and f"/{target.file}".endswith(f"/{file}" if file else ""):
            places.setdefault(target.file, set()).add(target.line)
    if len(places) > 1:
        raise UserError(f"{name} is in {', '.join(sorted(places))}: write FILE:{function}")
    for path, lines in places.items():
        return path, (min(lines), max(lines))
    return None


def annotated_source(source: Source, tally: Tally, part: tuple[int, int] | None = None) -> str:
    """Return a file as it was tested, with the number of tests that reached each line.

    `part` has the first and the last line to show; None: all.
    """
    if not source.text:
        raise UserError(f"{source.path} was measured without its source")
    counts: dict[int, str] = {}
    for number, target in enumerate(tally.catalogue.targets):
        if target.kind == "line" and target.file == source.path:
            count = tally.counts[number]
            counts[target.line] = f"{count:,}" if count else _by_import(tally, number)
    lines = source.text.removesuffix("\n").split("\n")
    width = max(map(len, [*counts.values(), "tests"]))
    head = f"{'tests':>{width}}  line"
    first, last = part or (1, len(lines))
    shown = [
        f"{counts.get(i, ''):>{width}}  {i:>4}  {line}".rstrip()
        for i, line in enumerate(lines, 1)
        if first <= i <= last
    ]
    return "\n".join([head, *shown])


def _by_import(tally: Tally, number: int) -> str:
    return "import" if number in tally.outside else "-"


def changed_line(sources: Iterable[Source], campaign: int, done: str) -> str:
    """Return a line that says that files have changed since they were tested; empty if none has.

    `done` names what is shown.
    """
    changed = [source.path for source in sources if not is_as_it_was(source)]
    if not changed:
        return ""
    more = f" and {len(changed) - 1} more have" if len(changed) > 1 else " has"
    return f"{changed[0]}{more} changed since campaign {campaign}; {done} is what was tested"


def target_rows(
    tally: Tally, tests: int, kind: str = "", file: str = "", unreached: bool = False
) -> list[tuple[str, ...]]:
    """Return targets with the number and share of tests that hit each, the rarest first.

    `tests` is the number of tests with coverage; `kind`, `file` and `unreached` select targets.
    """
    selected = [
        (number, target)
        for number, target in enumerate(tally.catalogue.targets)
        if kind in ("", target.kind)
        and file in ("", target.file)
        and not (unreached and tally.reached(number))
    ]
    selected.sort(key=lambda pair: (tally.counts[pair[0]], _natural_order(pair[1])))
    return [_target_row(tally, number, target, tests) for number, target in selected]


def _natural_order(target: Target) -> tuple[Any, ...]:
    """Return a sort key: file, line, and the name with its numbers compared as numbers."""
    parts = re.split(r"([0-9]+)", target.name)
    return (
        target.file,
        target.line,
        [(int(part), "") if part.isdigit() else (-1, part) for part in parts],
    )


def _target_row(tally: Tally, number: int, target: Target, tests: int) -> tuple[str, ...]:
    count = tally.counts[number]
    share = format_percent(count / tests, 1) if count and tests else ""
    shown = f"{count:,}" if count else _by_import(tally, number)
    return (str(target), shown, share, target.function, target.detail)
