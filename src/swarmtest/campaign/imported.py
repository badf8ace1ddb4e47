"""Coverage that other tools measured, as a campaign in the store.

Such a campaign has no features: it says what tests reach, not why. Contexts of a coverage.py file
and test names of an LCOV file are tests; the name of each is kept as the test's origin.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.instrument.interchange import (
    TestCoverage,
    read_cobertura,
    read_coverage_data,
    read_lcov,
    read_lcov_tests,
)
from swarmtest.instrument.interchange.summary import FileCoverage, number_of
from swarmtest.instrument.scope import project_root, shown_path
from swarmtest.store import CampaignRecord, Store, TrialRecord
from swarmtest.targets import Source, Target, content_hash, pack_hits


def import_coverage(store: Store, file: Path, name: str) -> tuple[int, int]:
    """Keep a file's tests as a campaign; answers its number, and how many tests it has."""
    files, tests = _read(file)
    if not tests:
        raise UserError(f"{file} holds no coverage")
    kinds = (
        ["line", "branch"] if any(arcs for t in tests for _, arcs in t.files.values()) else ["line"]
    )
    campaign = store.add_campaign(
        CampaignRecord(
            subject=name,
            strategy="imported",
            seed=0,
            space={"dimensions": [], "constraints": []},
            options={
                "subject": None,
                "budget": {},
                "coverage": {"kinds": kinds, "from": str(file)},
            },
            status="finished",
            created=time.time(),
        )
    )
    sources = {path: _source(path) for path in _paths(files, tests)}
    store.add_sources(campaign, sources.values())
    store.target_ids(
        [target for one in files for target in _targets(sources[one.path], one.lines, one.branches)]
    )
    packed = {test.name: _packed(store, test, sources) for test in tests}
    if len(packed) > 1 and "" in packed:  # what was executed in no context: imports
        store.update_campaign(campaign, outside=packed.pop(""))
    rows = [
        TrialRecord(number, b"", origin=name, hits=hits)
        for number, (name, hits) in enumerate(packed.items())
    ]
    store.record(campaign, rows)
    return campaign, len(rows)


def _packed(store: Store, test: TestCoverage, sources: dict[str, Source]) -> bytes:
    hit = [
        target
        for path, (lines, arcs) in test.files.items()
        for target in _targets(sources[path], lines, arcs)
    ]
    return pack_hits(store.target_ids(hit))


def _read(file: Path) -> tuple[list[FileCoverage], list[TestCoverage]]:
    """What a file says of files (which may list lines that were not hit), and of tests."""
    if file.suffix == ".xml":
        files = read_cobertura(_bytes(file), str(file))
        return files, [_as_test(files)]
    if file.suffix in (".lcov", ".info"):
        text = _bytes(file).decode(errors="replace")
        return read_lcov(text, str(file)), read_lcov_tests(text, str(file))
    return [], read_coverage_data(file)


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None


def _as_test(files: Iterable[FileCoverage]) -> TestCoverage:
    return TestCoverage(
        "",
        {
            file.path: (
                frozenset(line for line, count in file.lines.items() if count),
                frozenset(arc for arc, count in file.branches.items() if count),
            )
            for file in files
        },
    )


def _paths(files: Iterable[FileCoverage], tests: Iterable[TestCoverage]) -> list[str]:
    return sorted({file.path for file in files} | {path for t in tests for path in t.files})


def _source(path: str) -> Source:
    place = Path(path) if Path(path).exists() else project_root() / path
    try:
        text = place.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return Source(shown_path(str(place)) if text else path, text)


def _targets(source: Source, lines: Iterable[int], arcs: Iterable[tuple[int, int]]) -> list[Target]:
    text = source.text.splitlines()

    def at(line: int) -> str:
        return text[line - 1] if 0 < line <= len(text) else ""

    found = [
        Target("line", f"{source.path}:{n}", source.path, n, "", content_hash(at(n)), source.id)
        for n in lines
    ]
    for line, to in arcs:
        if number_of(to) is not None or line < 0:
            continue
        way = f"{to}" if to > 0 else f"exit({-to})"
        content = content_hash(f"{at(line)}\n{at(to) if to > 0 else 'exit'}")
        name = f"{source.path}:{line}->{way}"
        found.append(Target("branch", name, source.path, line, "", content, source.id))
    return found
