"""The places in a SARIF 2.1.0 file, which static analysers write.

Only what leads to a place is read: where a result lies, by its file's URI and its region. Results
that were suppressed, or that say that all is well, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from swarmtest.errors import UserError

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
