"""Read what earlier tests of a subject say about the current code.

A store keeps the whole text of every version of a file that was watched. A line of the current
file is found in each version by comparing texts (`swarmtest.languages.line_mapping`), and the
tests that hit it in any version count. Directed campaigns are left out: what they hit was chosen.

Invariants: a column has one entry per test of the study, in the study's order. A test is in no
`knowing` column if its campaign did not watch the file, or watched a version without that line.
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
from swarmtest.analysis.hit_blocks import hit_columns, hit_counts
from swarmtest.core.space import Space
from swarmtest.core.targets import Source, Target
from swarmtest.coverage.scope import place_of, project_root, shown_path, text_of
from swarmtest.languages.changes import earlier_names
from swarmtest.languages.line_mapping import OldLine, old_lines, share_in_common
from swarmtest.languages.source import is_c, language_of
from swarmtest.languages.text_lines import continued_statement, lines_of
from swarmtest.roles.study import Study
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord

# Finding the stored version of a current file.
#
# A store may have been filled on another machine, from another directory, and before the file was
# renamed. Tried in this order: the same path or name; an earlier name that git knows; a name with
# the same ending; and last the content of stored files whose names no longer exist.

# Cached because every campaign in a store asks for the same files.
_git_names = lru_cache(maxsize=1024)(earlier_names)
_ALIKE = 0.6
"""Files with at least this share of lines in common are versions of the same file."""


@dataclass(frozen=True)
class EarlierVersion:
    """A stored version of a file that is on disk now."""

    source: Source
    name_then: str = ""
    """Its earlier name, if that was different; empty otherwise."""


def matching_source(
    place: str | Path,
    sources: Sequence[Source],
    renamed: Callable[[str], tuple[str, ...]] = _git_names,
) -> EarlierVersion | None:
    """Return the stored version of a file; None if there is none, or no such file.

    Of several versions, return the one whose text is the same or most similar; among equals, the
    last in `sources`.
    """
    real = Path(os.path.realpath(place))
    stored = [source for source in sources if source.text]
    if not stored or not real.is_file():
        return None
    shown, text = shown_path(str(real)), text_of(real, real.name)
    for candidates in _candidates(str(real), shown, text, stored, renamed):
        if candidates:
            best = max(reversed(candidates), key=lambda source: _nearness(source, text))
            same_place = best.path == shown or place_of(best) == str(real)
            return EarlierVersion(best, "" if same_place else best.path)
    return None


def _candidates(
    real: str,
    shown: str,
    text: str,
    stored: list[Source],
    renamed: Callable[[str], tuple[str, ...]],
) -> Iterator[list[Source]]:
    """Yield the sources that may be versions of the file, the surest criterion first."""
    yield [source for source in stored if source.path == shown or place_of(source) == real]
    elsewhere = [source for source in stored if not _is_another_file(source, real)]
    names = renamed(real) if elsewhere else ()
    yield [source for source in elsewhere if any(_end_alike(source.path, name) for name in names)]
    alike = [source for source in elsewhere if share_in_common(source.text, text) >= _ALIKE]
    yield [source for source in alike if _end_alike(source.path, shown)]
    yield alike


def _nearness(source: Source, text: str) -> float:
    return 2.0 if source.text == text else share_in_common(source.text, text)


def _is_another_file(source: Source, real: str) -> bool:
    """Return whether a stored file still exists under its own name, beside the one in question.

    It may have been stored on another machine, where the project was in another directory.
    """
    places = {place_of(source), os.path.realpath(project_root() / source.path)}
    return any(place != real and os.path.exists(place) for place in places)


def _end_alike(first: str, second: str) -> bool:
    """Return whether one path is the end of the other, as if named from different directories.

    >>> _end_alike("src/shop/cart.py", "shop/cart.py"), _end_alike("a/cart.py", "b/cart.py")
    (True, False)
    """
    return f"/{first}".endswith(f"/{second}") or f"/{second}".endswith(f"/{first}")


# The history of a subject.

_MOST_NAMES = 4
"""At most this many added or removed features are named."""


@dataclass(frozen=True)
class MappedVersion:
    """A stored version of a file, as seen from the current text."""

    source: Source
    renamed: str
    """Its earlier name, if that was different; empty otherwise."""
    lines: dict[int, OldLine]
    """The lines of this version, by the lines of the current text."""
    campaigns: frozenset[int]
    """The positions of its campaigns in the study's list."""


@dataclass
class History:
    """Earlier tests of a subject, by lines of the current files."""

    study: Study
    watched: dict[int, list[Source]]
    """The sources of each campaign, by its position in the study's list."""
    _versions: dict[str, list[MappedVersion]] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _packed: dict[int, Words] = field(default_factory=dict)
    """The tests that hit a target, by its id, with 64 tests to a word."""
    _watched_targets: dict[int, dict[int, Target]] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)

    @property
    def campaigns(self) -> tuple[int, ...]:
        """Return the campaigns that the data comes from."""
        return self.study.evidence.campaigns

    @property
    def has_lines(self) -> bool:
        """Return whether any line is known to have been hit."""
        return bool(self._lines)

    def text(self, place: str) -> str:
        """Return the current text of a file; empty if it cannot be read."""
        if place not in self._texts:
            self._texts[place] = _read(place)
        return self._texts[place]

    def versions(self, place: str) -> list[MappedVersion]:
        """Return the versions of a file that earlier tests watched."""
        if place not in self._versions:
            self._versions[place] = self._find_versions(place)
        return self._versions[place]

    def texts(self) -> dict[str, str]:
        """Return the current texts of all watched files that still exist, by path."""
        places = {self.place_of(source) for sources in self.watched.values() for source in sources}
        return {place: self.text(place) for place in sorted(places) if place and self.text(place)}

    def place_of(self, source: Source) -> str:
        """Return the current path of a watched file.

        If the data comes from another copy of the project, this is the path in this project.
        """
        if source.id not in self._places:
            here = os.path.realpath(project_root() / source.path)
            self._places[source.id] = here if os.path.exists(here) else place_of(source)
        return self._places[source.id]

    def count(self, place: str, line: int) -> int:
        """Return how many tests hit a line, in any version."""
        return sum(self._counts.get(id, 0) for id in self._ids(place, line))

    def column(self, lines: Iterable[tuple[str, int]]) -> Bools:
        """Return which tests hit at least one of these lines."""
        return self._column(id for place, line in lines for id in self._ids(place, line))

    def preload(self, places: Iterable[str]) -> None:
        """Read the hits of whole files in one pass over the tests."""
        sources = {version.source.id for place in places for version in self.versions(place)}
        self._load(id for (source, _), id in self._lines.items() if source in sources)

    def _load(self, ids: Iterable[int]) -> None:
        missing = sorted({id for id in ids if id not in self._packed})
        if not missing:
            return
        columns = hit_columns(self.study.evidence, missing)
        self._packed.update(zip(missing, columns, strict=True))

    def knowing(self, place: str, line: int) -> Bools:
        """Return the tests that could have been seen to hit a line.

        Their hits are known, and their campaigns watched the line in some version.
        """
        campaigns = {n for v in self.versions(place) if line in v.lines for n in v.campaigns}
        evidence = self.study.evidence
        known: Bools = np.isin(evidence.campaign, sorted(campaigns)) & evidence.hits_known
        return known

    def unchanged(self, place: str) -> Bools:
        """Return the tests whose campaigns watched the current text of a file."""
        text, evidence = self.text(place), self.study.evidence
        campaigns = {n for v in self.versions(place) if v.source.text == text for n in v.campaigns}
        same: Bools = np.isin(evidence.campaign, sorted(campaigns))
        return same

    def how_mapped(self, place: str, line: int) -> str:
        """Say where a line was in an earlier version; empty if it has not moved."""
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
        """Return the current lines that are known to be in the same function as a line."""
        targets = self.targets_at(place, line)
        if not targets:
            return []
        source, function = targets[-1].source, targets[-1].function
        lines = next(v.lines for v in self.versions(place) if v.source.id == source)
        inside = {
            target.line
            for target in self.study.targets.values()
            if (target.kind, target.source, target.function) == ("line", source, function)
        }
        return [new for new, old in lines.items() if old.line in inside and new != line]

    def block_of(self, place: str, line: int) -> int:
        """Return the line whose target stands for a line of native code.

        That is the line itself, if the compiler made code of it, or if it is new. A line of C that
        continues a statement runs with the statement; 0 if there is no code. In other languages,
        programs report where blocks begin, and a line runs with the one that comes before it.
        """
        function_at, text = language_of(place).function_at, self.text(place)
        for version in reversed(self.versions(place)):
            watched = self._watched_lines(version)
            lines = [new for new, old in version.lines.items() if old.line in watched]
            if line in lines:
                return line
            if lines and is_c(place):
                if line not in version.lines:
                    return line
                return continued_statement(lines_of(text), line, lines)
            before = [new for new in lines if new <= line]
            if before and function_at(text, max(before)) == function_at(text, line):
                return max(before)
        return line

    def _watched_lines(self, version: MappedVersion) -> set[int]:
        """Return the lines of a version that are targets, hit or not."""
        campaign = self.campaigns[min(version.campaigns)]
        if campaign not in self._watched_targets:
            self._watched_targets[campaign] = self.study.store.watched_targets(campaign)
        return {
            target.line
            for target in self._watched_targets[campaign].values()
            if target.kind == "line" and target.source == version.source.id
        }

    def targets_at(self, place: str, line: int) -> list[Target]:
        """Return the line as a target, once for each version in which it was hit."""
        return [self.study.targets[id] for id in self._ids(place, line)]

    def _ids(self, place: str, line: int) -> list[int]:
        ids = []
        for version in self.versions(place):
            old = version.lines.get(line)
            if old is not None:
                id = self._lines.get((version.source.id, old.line))
                ids += [] if id is None else [id]
        return ids

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
        """Return the ids of lines that were hit, by source and line."""
        return {
            (target.source, target.line): id
            for id, target in self.study.targets.items()
            if target.kind == "line"
        }

    @cached_property
    def _counts(self) -> dict[int, int]:
        ids = sorted(self._lines.values())
        counts = hit_counts(self.study.evidence, ids)
        return dict(zip(ids, counts.tolist(), strict=True))

    def _find_versions(self, place: str) -> list[MappedVersion]:
        matched: dict[str, tuple[Source, str, set[int]]] = {}
        for position, sources in self.watched.items():
            match = matching_source(place, sources)
            if match is not None:
                _, _, campaigns = matched.setdefault(
                    match.source.id, (match.source, match.name_then, set())
                )
                campaigns.add(position)
        text = self.text(place)
        return [
            MappedVersion(source, name, dict(old_lines(source.text, text)), frozenset(campaigns))
            for source, name, campaigns in matched.values()
        ]


def history_of(
    store: Store, subject: str, space: Space, confidence: float, only: int | None = None
) -> History | None:
    """Return the earlier tests of a subject with the same features; None if there are none.

    `only` restricts the history to one campaign.
    """
    same = [
        record
        for record in store.campaigns()
        if only in (None, record.id) and _is_usable(store, record, subject, space)
    ]
    # The same strategy, seed and constraints give the same tests: the latest campaign is enough.
    campaigns = {(r.strategy, r.seed, json.dumps(r.space)): r.id for r in same}
    if not campaigns:
        return None
    study = Study(store, sorted(campaigns.values()), confidence)
    watched = {n: store.sources(id) for n, id in enumerate(study.evidence.campaigns)}
    return History(study, watched)


def changed_features(store: Store, subject: str, space: Space) -> str:
    """Say how the features differ from those of the subject's last campaign; empty if not at all.

    Tests with other features cannot be used: a feature that was never on or never off has no role.
    """
    last = next((r for r in reversed(store.campaigns()) if r.subject == subject), None)
    if last is None or not last.space["dimensions"]:
        return ""
    then, now = set(Space.from_json(last.space).feature_names), set(space.feature_names)
    changes = [
        f"{word} {', '.join(sorted(names)[:_MOST_NAMES])}{' ...' * (len(names) > _MOST_NAMES)}"
        for word, names in (("new:", now - then), ("gone:", then - now))
        if names
    ]
    return (
        f"the features have changed since campaign {last.id} ({'; '.join(changes)})"
        if changes
        else ""
    )


def _is_usable(store: Store, record: CampaignRecord, subject: str, space: Space) -> bool:
    """Return whether a campaign is undirected, not empty, and has the subject's features."""
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
