"""Targets that are listed in a file: one per line, or what a static analyser found (SARIF).

A line that says nothing is the user's to mend. One that names what cannot be a target (any more) is
told as unusable, as long as the file names others that can.
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
    Found,
    from_function,
    from_line,
    from_lines,
    located,
    statements_between,
    united,
)
from swarmtest.languages.source import is_code_file

# -------------------------------------------------------------------------------------------------
# The places in a SARIF 2.1.0 file, which static analysers write.
#
# Only what leads to a place is read: where a result lies, by its file's URI and its region.
# Results
# that were suppressed, or that say that all is well, are left out.

_MOST_BASES = 10
_NO_FINDING = ("pass", "notApplicable", "informational")


class Finding(NamedTuple):
    """Lines of a file that a rule found fault with."""

    path: str
    """As far as the file tells: absolute, or relative to the project."""
    first: int
    """0 when it is about the whole file."""
    last: int
    rule: str


def findings(document: Any, file: str) -> Iterator[Finding]:
    """The findings of a SARIF document; `file` is its name, for complaints."""
    runs = document.get("runs") if isinstance(document, Mapping) else None
    if not isinstance(runs, list):
        raise UserError(f"{file} is JSON, but not SARIF: it has no list of runs")
    for run in runs:
        for result in _listed(run, "results"):
            if not _is_settled(result):
                yield from _findings_of(result, run)


def _is_settled(result: Mapping[str, Any]) -> bool:
    suppressed = any(one.get("status", "accepted") == "accepted" for one in _suppressions(result))
    gone = result.get("baselineState") == "absent"
    return suppressed or gone or result.get("kind") in _NO_FINDING


def _suppressions(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in _listed(result, "suppressions") if isinstance(one, Mapping)]


def _findings_of(result: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[Finding]:
    rule = str(result.get("ruleId") or _part(result, "rule").get("id") or "a result")
    for location in _listed(result, "locations"):
        physical = _part(location, "physicalLocation")
        path = _path(_part(physical, "artifactLocation"), run)
        region = _part(physical, "region")
        first, last = _number(region.get("startLine")), _number(region.get("endLine"))
        if region.get("endColumn") == 1:
            last -= 1  # it ends before the first character of that line
        if path:
            yield Finding(path, first, max(first, last), rule)


def _path(location: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """A file's path: its URI, below the base that the URI names."""
    index = location.get("index")
    artifacts = _listed(run, "artifacts")
    if "uri" not in location and isinstance(index, int) and 0 <= index < len(artifacts):
        location = _part(artifacts[index], "location")
    path = _from_uri(str(location.get("uri", "")))
    bases = _part(run, "originalUriBaseIds")
    for _ in range(_MOST_BASES):  # bases may name bases, and a faulty file may go round
        name = location.get("uriBaseId")
        location = _part(bases, str(name)) if name else {}
        if not location or path.startswith("/"):
            break
        path = str(Path(_from_uri(str(location.get("uri", ""))), path))
    return path


def _from_uri(uri: str) -> str:
    """A path; names that are no URIs (with spaces, or of Windows) are taken as they are.

    >>> _from_uri("file:///home/me/my%20shop/cart.py")
    '/home/me/my shop/cart.py'
    """
    if uri.startswith("file:"):
        return unquote(urlsplit(uri).path)
    return unquote(uri).replace("\\", "/")


def _listed(data: Any, key: str) -> list[Any]:
    found = data.get(key) if isinstance(data, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _part(data: Any, key: str) -> Mapping[str, Any]:
    found = data.get(key) if isinstance(data, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


# -------------------------------------------------------------------------------------------------

_NAMED = frozenset({*KINDS, "event", "fault", "mutant"})
_PLACE = re.compile(r"(?P<place>.+?:\d+)(:\d+)?(:\s.*)?")
"""A line of a file, perhaps with the column and message that compilers and linters add."""
_RANGE = re.compile(r".+:\d+-\d+")


def from_file(path: str | Path) -> Found:
    """The targets that a file lists.

    One per line: ``FILE:LINE``, ``FILE:FIRST-LAST``, ``MODULE:FUNCTION``, ``fault:ID``,
    ``event:NAME`` or another target's name; blank lines and those that begin with ``#`` are left
    out. Or SARIF 2.1.0.
    """
    why = f"--targets-from {path}"
    text = _read(Path(path), why)
    if text.lstrip().startswith(("{", "[")):
        tried = [_from_finding(one, why) for one in _sarif(text, str(path))]
        what = "no finding of it lies in code"
    else:
        tried = [_from_entry(entry, where, why) for where, entry in _entries(text, str(path))]
        what = "it lists no target" if not tried else "no target of it can be used"
    found = united(tried)
    if not found.wanted and not found.names:
        told = f": {'; '.join(found.unusable[:3])}" if found.unusable else ""
        more = f" and {len(found.unusable) - 3} more" if len(found.unusable) > 3 else ""
        raise UserError(f"{why}: {what}{told}{more}")
    return found


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
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            yield f"{file}:{number}", entry


def _from_entry(entry: str, where: str, why: str) -> Found:
    kind, mark, name = entry.partition(":")
    if not mark or not kind or not name.strip():
        raise UserError(
            f"{where}: {entry!r} is no target; write FILE:LINE, FILE:FIRST-LAST, MODULE:FUNCTION "
            "or KIND:NAME, as in fault:3f2a"
        )
    if kind in _NAMED and kind != "line":
        return Found(names=(entry,))
    place = name if kind == "line" else entry
    try:
        return _place(place, why)
    except UserError as error:
        return Found(unusable=(f"{where}: {str(error).removeprefix(f'{why}: ')}",))


def _place(text: str, why: str) -> Found:
    if _RANGE.fullmatch(text):
        return from_lines(text, why)
    line = _PLACE.fullmatch(text)
    return from_line(line["place"], why) if line else from_function(text, why)


def _sarif(text: str, file: str) -> list[Finding]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UserError(f"{file} begins like SARIF (JSON), but is none: {error}") from None
    except RecursionError:
        raise UserError(f"{file} is nested too deeply to be SARIF") from None
    return list(findings(document, file))


def _from_finding(finding: Finding, why: str) -> Found:
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
        return Found(unusable=(f"{finding.rule} at {shown}: {reason}",))


def _found_here(path: str) -> Path:
    """The file on this machine; one that was analysed on another is known by the end of its path.

    >>> _found_here("/builds/elsewhere/nothing/cart.py")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: there is no such file here
    """
    parts = Path(path).parts
    tails = range(len(parts)) if path.startswith("/") else range(1)
    for start in tails:
        found = located(str(Path(*parts[start:])))
        if found is not None:
            return found
    raise UserError("there is no such file here")
