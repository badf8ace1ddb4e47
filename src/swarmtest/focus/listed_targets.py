"""Targets that are listed in a file: one per line, or what a static analyser found (SARIF).

A line that says nothing is the user's to mend. One that names what cannot be a target (any more) is
told as unusable, as long as the file names others that can.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.focus.found import Found, united
from swarmtest.focus.named_functions import from_function
from swarmtest.focus.named_places import from_line, from_lines, located, statements_between
from swarmtest.focus.sarif import Finding, findings
from swarmtest.focus.statements import is_code_file
from swarmtest.instrument.kinds import KINDS

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
    swarmtest.errors.UserError: there is no such file here
    """
    parts = Path(path).parts
    tails = range(len(parts)) if path.startswith("/") else range(1)
    for start in tails:
        found = located(str(Path(*parts[start:])))
        if found is not None:
            return found
    raise UserError("there is no such file here")
