"""Read targets from a file: one per line, or the findings of a static analyser (SARIF).

A line that cannot be understood is an error that the user has to fix. A line that names something
that cannot be a target (any more) is reported as unusable, as long as the file names others that
can.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from swarmtest.core.errors import UserError
from swarmtest.coverage.kinds import KINDS
from swarmtest.languages.places import (
    ResolvedTargets,
    from_function,
    from_line,
    from_lines,
    located,
    statements_between,
    united,
)
from swarmtest.languages.source import is_code_file

_NAMED = frozenset({*KINDS, "event", "fault", "mutant"})
_PLACE = re.compile(r"(?P<place>.+?:\d+)(:\d+)?(:\s.*)?")
"""A line of a file, possibly with the column and message that compilers and linters add."""
_RANGE = re.compile(r".+:\d+-\d+")


def from_file(path: str | Path) -> ResolvedTargets:
    """Return the targets that a file lists.

    The file is SARIF 2.1.0, or has one target per line: ``FILE:LINE``, ``FILE:FIRST-LAST``,
    ``MODULE:FUNCTION``, ``fault:ID``, ``event:NAME`` or another target's name. Blank lines and
    lines that begin with ``#`` are ignored.
    """
    why = f"--targets-from {path}"
    text = _read(Path(path), why)
    if text.lstrip().startswith(("{", "[")):
        results = [_from_finding(finding, why) for finding in _sarif(text, str(path))]
        problem = "no finding of it lies in code"
    else:
        results = [_from_entry(entry, where, why) for where, entry in _entries(text, str(path))]
        problem = "it lists no target" if not results else "no target of it can be used"
    targets = united(results)
    if not targets.wanted and not targets.names:
        reasons = f": {'; '.join(targets.unusable[:3])}" if targets.unusable else ""
        more = f" and {len(targets.unusable) - 3} more" if len(targets.unusable) > 3 else ""
        raise UserError(f"{why}: {problem}{reasons}{more}")
    return targets


def _read(path: Path, why: str) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{why}: there is no such file (looked from {Path.cwd()})") from None
    except IsADirectoryError:
        raise UserError(f"{why}: it is a directory; name a file that lists targets") from None
    except OSError as error:
        raise UserError(f"{why}: cannot be read: {error.strerror}") from None
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{why}: it is not text (UTF-8)") from None


def _entries(text: str, file: str) -> Iterator[tuple[str, str]]:
    """Yield the position and the text of each entry."""
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            yield f"{file}:{number}", entry


def _from_entry(entry: str, where: str, why: str) -> ResolvedTargets:
    kind, colon, name = entry.partition(":")
    if not colon or not kind or not name.strip():
        raise UserError(
            f"{where}: {entry!r} is not a target; write FILE:LINE, FILE:FIRST-LAST, "
            "MODULE:FUNCTION or KIND:NAME, as in fault:3f2a"
        )
    if kind in _NAMED and kind != "line":
        return ResolvedTargets(names=(entry,))
    place = name if kind == "line" else entry
    try:
        return _place(place, why)
    except UserError as error:
        return ResolvedTargets(unusable=(f"{where}: {str(error).removeprefix(f'{why}: ')}",))


def _place(text: str, why: str) -> ResolvedTargets:
    if _RANGE.fullmatch(text):
        return from_lines(text, why)
    line = _PLACE.fullmatch(text)
    return from_line(line["place"], why) if line else from_function(text, why)


def _sarif(text: str, file: str) -> list[SarifFinding]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UserError(f"{file} begins like SARIF (JSON), but is not: {error}") from None
    except RecursionError:
        raise UserError(f"{file} is nested too deeply to be SARIF") from None
    return list(findings(document, file))


def _from_finding(finding: SarifFinding, why: str) -> ResolvedTargets:
    shown = f"{finding.path}:{finding.first}" if finding.first else finding.path
    try:
        if not finding.first:
            raise UserError("it is about the whole file, not about a line")
        place = _found_here(finding.path)
        if not is_code_file(place):
            raise UserError("not code that is watched")
        return statements_between(place, finding.first, finding.last, why)
    except UserError as error:
        reason = str(error).removeprefix(f"{why}: ")
        return ResolvedTargets(unusable=(f"{finding.rule} at {shown}: {reason}",))


def _found_here(path: str) -> Path:
    """Return the file on this machine.

    A file that was analysed on another machine is found by the end of its path.

    >>> _found_here("/builds/elsewhere/nothing/cart.py")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: there is no such file here
    """
    parts = Path(path).parts
    tails = range(len(parts)) if path.startswith("/") else range(1)
    for start in tails:
        file = located(str(Path(*parts[start:])))
        if file is not None:
            return file
    raise UserError("there is no such file here")


# SARIF 2.1.0, which static analysers write.
#
# Only the location of each result is read: the URI of its file, and its region. Results that were
# suppressed, or that report no problem, are left out.

_MOST_BASES = 10
_NO_FINDING = ("pass", "notApplicable", "informational")


class SarifFinding(NamedTuple):
    """Lines of a file that a rule complains about."""

    path: str
    """The path in the SARIF file: absolute, or relative to the project."""
    first: int
    """The first line; 0 if it is about the whole file."""
    last: int
    rule: str


def findings(document: Any, file: str) -> Iterator[SarifFinding]:
    """Yield the findings of a SARIF document; `file` is its name, for error messages."""
    runs = document.get("runs") if isinstance(document, Mapping) else None
    if not isinstance(runs, list):
        raise UserError(f"{file} is JSON, but not SARIF: it has no list of runs")
    for run in runs:
        for result in _mappings(run, "results"):
            if not _is_settled(result):
                yield from _findings_of(result, run)


def _is_settled(result: Mapping[str, Any]) -> bool:
    """Return whether a result was suppressed, is gone, or reports no problem."""
    suppressions = _mappings(result, "suppressions")
    suppressed = any(one.get("status", "accepted") == "accepted" for one in suppressions)
    gone = result.get("baselineState") == "absent"
    return suppressed or gone or result.get("kind") in _NO_FINDING


def _findings_of(result: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[SarifFinding]:
    rule = str(result.get("ruleId") or _part(result, "rule").get("id") or "a result")
    for location in _mappings(result, "locations"):
        physical = _part(location, "physicalLocation")
        path = _path(_part(physical, "artifactLocation"), run)
        region = _part(physical, "region")
        first, last = _number(region.get("startLine")), _number(region.get("endLine"))
        if region.get("endColumn") == 1:
            last -= 1  # the region ends before the first character of that line
        if path:
            yield SarifFinding(path, first, max(first, last), rule)


def _path(location: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Return a file's path: its URI, resolved against the base that the URI names."""
    index = location.get("index")
    artifacts = _mappings(run, "artifacts")
    if "uri" not in location and isinstance(index, int) and 0 <= index < len(artifacts):
        location = _part(artifacts[index], "location")
    path = _from_uri(str(location.get("uri", "")))
    bases = _part(run, "originalUriBaseIds")
    for _ in range(_MOST_BASES):  # bases may refer to bases, in a faulty file in a circle
        name = location.get("uriBaseId")
        location = _part(bases, str(name)) if name else {}
        if not location or path.startswith("/"):
            break
        path = str(Path(_from_uri(str(location.get("uri", ""))), path))
    return path


def _from_uri(uri: str) -> str:
    """Return the path of a URI; names that are not URIs (spaces, Windows) are kept.

    >>> _from_uri("file:///home/me/my%20shop/cart.py")
    '/home/me/my shop/cart.py'
    """
    if uri.startswith("file:"):
        return unquote(urlsplit(uri).path)
    return unquote(uri).replace("\\", "/")


def _mappings(data: Any, key: str) -> list[Any]:
    """Return the mappings in a list of JSON data; empty if there is no such list."""
    value = data.get(key) if isinstance(data, Mapping) else None
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _part(data: Any, key: str) -> Mapping[str, Any]:
    """Return a mapping within JSON data; empty if there is none."""
    value = data.get(key) if isinstance(data, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
