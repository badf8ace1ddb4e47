"""What earlier tests of a subject tell about the code as it is now.

A store keeps the whole text of every version of a file that was watched, so a line of today's file
is found in each of them by comparing texts (`line_mapping`), and the tests that hit
it in any version count. Campaigns that were directed are left out: what they hit was chosen.

Invariants: columns have one entry per test of the study, in its order; a test of a campaign that
did not watch the file, or a version without that line, is in no `knowing` column.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from swarmtest.analysis.bit_counts import Bools, Words
from swarmtest.analysis.hit_columns import hit_blocks
from swarmtest.core.space import Space
from swarmtest.core.targets import Source, Target
from swarmtest.coverage.scope import place_of, project_root, shown_path, text_of
from swarmtest.languages.changes import earlier_names
from swarmtest.languages.line_mapping import OldLine, old_lines, share_in_common
from swarmtest.languages.source import language_of
from swarmtest.roles.study import Study
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord

# -------------------------------------------------------------------------------------------------
# Which stored version of a file the data about today's file comes from.
#
# A store may have been filled on another machine, from another directory, and before the file was
# renamed. What is tried, in this order: the same place or name, an earlier name that git knows, a
# name that ends alike, and at last the content of files whose names are no longer there.

_known_names = lru_cache(maxsize=1024)(earlier_names)
"""Asked again for the files of every campaign in a store."""
_ALIKE = 0.6
"""The share of lines that make two files versions of the same one, whatever they are called."""


@dataclass(frozen=True)
class Earlier:
    """A stored version of a file that is on disk now."""

    source: Source
    name_then: str = ""
    """What it was called, if that was something else; empty otherwise."""


def matching_source(
    place: str | Path,
    sources: Sequence[Source],
    renamed: Callable[[str], tuple[str, ...]] = _known_names,
) -> Earlier | None:
    """The stored version that a file comes from; None when there is none, or no such file.

    Of several, the one whose text is the same, or most like it; among equals the last in `sources`.
    """
    real = Path(os.path.realpath(place))
    known = [source for source in sources if source.text]
    if not known or not real.is_file():
        return None
    shown, text = shown_path(str(real)), text_of(real, real.name)
    for candidates in _tried(str(real), shown, text, known, renamed):
        if candidates:
            best = max(reversed(candidates), key=lambda source: _nearness(source, text))
            same_place = best.path == shown or place_of(best) == str(real)
            return Earlier(best, "" if same_place else best.path)
    return None


def _tried(
    real: str, shown: str, text: str, known: list[Source], renamed: Callable[[str], tuple[str, ...]]
) -> Iterator[list[Source]]:
    yield [one for one in known if one.path == shown or place_of(one) == real]
    elsewhere = [one for one in known if not _is_another_file(one, real)]
    names = renamed(real) if elsewhere else ()
    yield [one for one in elsewhere if any(_end_alike(one.path, name) for name in names)]
    alike = [one for one in elsewhere if share_in_common(one.text, text) >= _ALIKE]
    yield [one for one in alike if _end_alike(one.path, shown)]
    yield alike


def _nearness(source: Source, text: str) -> float:
    return 2.0 if source.text == text else share_in_common(source.text, text)


def _is_another_file(source: Source, real: str) -> bool:
    """Whether a stored file is still there under its own name, beside the one in question.

    It may have been stored on another machine, where the project was somewhere else.
    """
    places = {place_of(source), os.path.realpath(project_root() / source.path)}
    return any(place != real and os.path.exists(place) for place in places)


def _end_alike(one: str, other: str) -> bool:
    """Whether one path is the end of the other: they were named from different directories.

    >>> _end_alike("src/shop/cart.py", "shop/cart.py"), _end_alike("a/cart.py", "b/cart.py")
    (True, False)
    """
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")


# -------------------------------------------------------------------------------------------------

_MOST_NAMES = 4
"""Of features that came or went, how many are named."""


@dataclass(frozen=True)
class Version:
    """A version of a file that campaigns watched, as seen from today's text."""

    source: Source
    renamed: str
    """What the file was called, if that was something else; empty otherwise."""
    lines: dict[int, OldLine]
    """From lines of today's text to that version's."""
    campaigns: frozenset[int]
    """Places in the study's list of campaigns."""


@dataclass
class History:
    """Earlier tests, by lines of today's files."""

    study: Study
    watched: dict[int, list[Source]]
    """The sources of each campaign, by its place in the study's list."""
    _versions: dict[str, list[Version]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _packed: dict[int, Words] = field(default_factory=dict)
    """Columns of tests that hit a target, 64 to a word, by its id."""
    _watched_targets: dict[int, dict[int, Target]] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)

    @property
    def campaigns(self) -> tuple[int, ...]:
        """The campaigns behind it."""
        return self.study.evidence.campaigns

    @property
    def has_lines(self) -> bool:
        """Whether any line is known to have been hit."""
        return bool(self._lines)

    def text(self, place: str) -> str:
        """Today's text of a file; empty if it cannot be read."""
        if place not in self._texts:
            self._texts[place] = _read(place)
        return self._texts[place]

    def versions(self, place: str) -> list[Version]:
        """The versions of a file that earlier tests watched."""
        if place not in self._versions:
            self._versions[place] = self._find_versions(place)
        return self._versions[place]

    def texts(self) -> dict[str, str]:
        """Today's texts of all files that were watched and are still there, by place."""
        places = {self.place_of(source) for sources in self.watched.values() for source in sources}
        return {place: self.text(place) for place in sorted(places) if place and self.text(place)}

    def place_of(self, source: Source) -> str:
        """Where a file that was watched is now: in this project, if data came from another copy."""
        if source.id not in self._places:
            here = os.path.realpath(project_root() / source.path)
            self._places[source.id] = here if os.path.exists(here) else place_of(source)
        return self._places[source.id]

    def count(self, place: str, line: int) -> int:
        """How many tests hit a line, in any version."""
        return sum(self._counts.get(id, 0) for id in self._ids(place, line))

    def column(self, lines: Iterable[tuple[str, int]]) -> Bools:
        """Which tests hit one of these lines."""
        return self._column(id for place, line in lines for id in self._ids(place, line))

    def preload(self, places: Iterable[str]) -> None:
        """Read what is known of whole files in one pass over the tests."""
        sources = {version.source.id for place in places for version in self.versions(place)}
        self._load(id for (source, _), id in self._lines.items() if source in sources)

    def _load(self, ids: Iterable[int]) -> None:
        missing = sorted({id for id in ids if id not in self._packed})
        if not missing:
            return
        blocks = hit_blocks(self.study.store, self.study.evidence, missing)
        columns = np.concatenate([block.columns() for block in blocks], axis=1)
        self._packed.update(zip(missing, columns, strict=True))

    def knowing(self, place: str, line: int) -> Bools:
        """The tests whose campaigns watched the line in some version, and whose hits are known."""
        campaigns = {n for v in self.versions(place) if line in v.lines for n in v.campaigns}
        evidence = self.study.evidence
        known: Bools = np.isin(evidence.campaign, sorted(campaigns)) & evidence.known
        return known

    def unchanged(self, place: str) -> Bools:
        """The tests whose campaigns watched a file as it is now."""
        text, evidence = self.text(place), self.study.evidence
        campaigns = {n for v in self.versions(place) if v.source.text == text for n in v.campaigns}
        same: Bools = np.isin(evidence.campaign, sorted(campaigns))
        return same

    def how_mapped(self, place: str, line: int) -> str:
        """In words, where a line was in an earlier version; empty if where it is now."""
        for version in reversed(self.versions(place)):
            old = version.lines.get(line)
            if old is None:
                continue
            words = []
            if version.renamed:
                words.append(f"called {version.renamed} then")
            if old.line != line:
                words.append(f"line {old.line} then")
            if old.how == "edited":
                words.append("edited since")
            return ", ".join(words)
        return ""

    def lines_around(self, place: str, line: int) -> list[int]:
        """The lines of today's text that are known to lie in the same function as a line."""
        known = self.targets_at(place, line)
        if not known:
            return []
        source, function = known[-1].source, known[-1].function
        lines = next(v.lines for v in self.versions(place) if v.source.id == source)
        inside = {
            target.line
            for target in self.study.targets.values()
            if (target.kind, target.source, target.function) == ("line", source, function)
        }
        return [new for new, old in lines.items() if old.line in inside and new != line]

    def block_of(self, place: str, line: int) -> int:
        """The line whose target stands for a line: where its block begins (native code).

        A compiler tells only where blocks begin; the lines after that are reached with it.
        """
        function_at, text = language_of(place).function_at, self.text(place)
        for version in reversed(self.versions(place)):
            known = self._watched_lines(version)
            lines = [new for new, old in version.lines.items() if old.line in known]
            before = [new for new in lines if new <= line]
            if before and function_at(text, max(before)) == function_at(text, line):
                return max(before)
        return line

    def _watched_lines(self, version: Version) -> set[int]:
        """The lines of a version that are targets, hit or not."""
        campaign = self.campaigns[min(version.campaigns)]
        if campaign not in self._watched_targets:
            self._watched_targets[campaign] = self.study.store.watched_targets(campaign)
        return {
            target.line
            for target in self._watched_targets[campaign].values()
            if target.kind == "line" and target.source == version.source.id
        }

    def targets_at(self, place: str, line: int) -> list[Target]:
        """The line as a target, in each version in which it was hit."""
        return [self.study.targets[id] for id in self._ids(place, line)]

    def _ids(self, place: str, line: int) -> list[int]:
        found = []
        for version in self.versions(place):
            old = version.lines.get(line)
            if old is not None:
                id = self._lines.get((version.source.id, old.line))
                found += [] if id is None else [id]
        return found

    def _column(self, ids: Iterable[int]) -> Bools:
        chosen = sorted(set(ids))
        tests = self.study.evidence.n
        if not chosen:
            return np.zeros(tests, bool)
        self._load(chosen)
        words = np.bitwise_or.reduce([self._packed[id] for id in chosen])
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        return bits[:tests].astype(bool)

    @cached_property
    def _lines(self) -> dict[tuple[str, int], int]:
        """The ids of lines that were hit, by their source and line."""
        return {
            (target.source, target.line): id
            for id, target in self.study.targets.items()
            if target.kind == "line"
        }

    @cached_property
    def _counts(self) -> dict[int, int]:
        ids = sorted(self._lines.values())
        counts = np.zeros(len(ids), np.int64)
        for block in hit_blocks(self.study.store, self.study.evidence, ids):
            counts += block.hits
        return dict(zip(ids, counts.tolist(), strict=True))

    def _find_versions(self, place: str) -> list[Version]:
        matched: dict[str, tuple[Source, str, set[int]]] = {}
        for number, sources in self.watched.items():
            found = matching_source(place, sources)
            if found is not None:
                _, _, campaigns = matched.setdefault(
                    found.source.id, (found.source, found.name_then, set())
                )
                campaigns.add(number)
        text = self.text(place)
        return [
            Version(source, name, dict(old_lines(source.text, text)), frozenset(campaigns))
            for source, name, campaigns in matched.values()
        ]


def history_of(
    store: Store, subject: str, space: Space, confidence: float, only: int | None = None
) -> History | None:
    """The earlier tests of a subject with the same features; None if there are none.

    `only`: of this one campaign.
    """
    same = [
        record
        for record in store.campaigns()
        if only in (None, record.id) and _tells(store, record, subject, space)
    ]
    # The same strategy, seed and constraints give the same tests: the latest ones are enough.
    campaigns = {(r.strategy, r.seed, json.dumps(r.space)): r.id for r in same}
    if not campaigns:
        return None
    study = Study(store, sorted(campaigns.values()), confidence)
    watched = {n: store.sources(id) for n, id in enumerate(study.evidence.campaigns)}
    return History(study, watched)


def changed_features(store: Store, subject: str, space: Space) -> str:
    """How the features differ from those of the last campaign of a subject; empty if they do not.

    Tests with other features cannot be compared: what was never on or off tells nothing.
    """
    last = next((r for r in reversed(store.campaigns()) if r.subject == subject), None)
    if last is None or not last.space["dimensions"]:
        return ""
    then, now = set(Space.from_json(last.space).feature_names), set(space.feature_names)
    told = [
        f"{word} {', '.join(sorted(some)[:_MOST_NAMES])}{' ...' * (len(some) > _MOST_NAMES)}"
        for word, some in (("new:", now - then), ("gone:", then - now))
        if some
    ]
    return f"the features have changed since campaign {last.id} ({'; '.join(told)})" if told else ""


def _tells(store: Store, record: CampaignRecord, subject: str, space: Space) -> bool:
    return (
        record.subject == subject
        and not record.options.get("plan")
        and bool(record.space["dimensions"])
        and Space.from_json(record.space).feature_names == space.feature_names
        and bool(store.summary(record.id)["trials"])
    )


def _read(place: str) -> str:
    import tokenize

    try:
        if place.endswith(".py"):
            with tokenize.open(place) as file:
                return file.read()
        return Path(place).read_text(errors="replace")
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ""
