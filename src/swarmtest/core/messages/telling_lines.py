"""Find the line of a program's output that says most about why it failed.

The last line is often a summary ("compilation terminated."), and the first one often says only
where ("In file included from test.c:3:"). So each line gets a rank, and the line with the highest
one counts:

- `CAUSE`: something is missing, such as a header, a library, a command or a module;
- `ERROR`: it calls itself an error;
- `COMPLAINT`: it says in other words that something did not work;
- `PLAIN`: anything else;
- `DETAIL`: a warning, a note, a location, an excerpt of source code;
- `SUMMARY`: it says only that there was an error.

Among errors the first one counts, because later ones tend to follow from it; otherwise the last,
because programs print last why they end. A Python traceback counts as one line: the last exception.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

_LONGEST = 2_000
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_TRACEBACK = re.compile(
    r"^(?P<stack>Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n)+)(?P<what>\S[^\n]*)",
    re.MULTILINE,
)
_BETWEEN_TRACEBACKS = re.compile(
    r"^(During handling of the above exception|The above exception was the direct cause)"
)

_SUMMARY = re.compile(
    r"^compilation terminated\.?$"
    r"|^\d+ (warning|error)s?( and \d+ errors?)? generated\.?$"
    r"|: error: (ld returned \d+ exit status|linker command failed)"
    r"|warnings? being treated as errors"
    r"|too many errors emitted"
    r"|^make(\[\d+\])?: \*\*\* \[.*\] Error \d+|^ninja: build stopped"
    r"|^error: aborting due to |^error: could not compile |^For more information about this error"
    r"|^Please submit a (full )?bug report"
)
_DETAIL = re.compile(
    r"\b(warning|note|remark|hint|help|info|debug)\s*:"
    r"|^In file included from |^\s+from \S+:\d+"
    r"|: [Ii]n (member |static )?(function|constructor|destructor)\b.*:$|: At top level:$"
    r"|^\s*\d*\s*\||^[\s^~|]+$"
    r"|^usage: |\b0 errors\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"No such file or directory|\bfile not found\b|\bcommand not found\b|: not found$"
    r"|include file '.*' not found"
    r"|\bundefined reference to\b|\bundefined symbol\b|\bcannot find -l|\bNo module named\b"
    r"|\bcannot open shared object file\b|\bNo rule to make target\b"
)
_ERROR = re.compile(r"\b(error|fatal|panic|panicked)\b|\b\w+(Error|Exception)\b", re.IGNORECASE)
_COMPLAINT = re.compile(
    r"\b(failed|failure|cannot|can't|could not|couldn't|unable|invalid|unknown|unrecogni[sz]ed"
    r"|unsupported|unexpected|denied|missing|illegal|bad|abort(ed)?|not (found|supported|allowed"
    r"|permitted|installed))\b",
    re.IGNORECASE,
)


class Rank(enum.IntEnum):
    """How much a line says about why a program failed."""

    SUMMARY = 0
    DETAIL = 1
    PLAIN = 2
    COMPLAINT = 3
    ERROR = 4
    CAUSE = 5


def rank_of(line: str) -> Rank:
    """Return the rank of one line.

    >>> rank_of("test.c:10:10: fatal error: csmith.h: No such file or directory").name
    'CAUSE'
    >>> rank_of("compilation terminated.").name
    'SUMMARY'
    """
    if _SUMMARY.search(line):
        return Rank.SUMMARY
    if _DETAIL.search(line):
        return Rank.DETAIL
    if _CAUSE.search(line):
        return Rank.CAUSE
    if _ERROR.search(line):
        return Rank.ERROR
    return Rank.COMPLAINT if _COMPLAINT.search(line) else Rank.PLAIN


def telling_line(errors: str, output: str = "") -> str:
    """Return the line that says most: of standard error, or a better one of standard output.

    Standard output counts only if it calls something an error: the rest is a program's result.

    >>> telling_line("a.c:1:9: error: 'x' undeclared\\n1 error generated.\\n")
    "a.c:1:9: error: 'x' undeclared"
    >>> telling_line("done\\n", "a.c:3: error: bad\\n")
    'a.c:3: error: bad'
    """
    rank, line = _best(errors)
    if rank < Rank.ERROR:
        other_rank, other = _best(output)
        if other_rank >= Rank.ERROR:
            return other
    return line


def _best(text: str) -> tuple[Rank, str]:
    """Return the line of a text that says most, and its rank."""
    best, chosen = Rank.SUMMARY, ""
    for line in _lines(text):
        rank = rank_of(line)
        first_counts = rank > Rank.PLAIN
        if rank > best or not chosen or (rank == best and not first_counts):
            best, chosen = rank, line.strip()
    return best, chosen


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that are not blank, without colours.

    Of tracebacks, only the last exception is kept.
    """
    text = _COLOUR.sub("", text)
    tracebacks = list(_TRACEBACK.finditer(text))
    parts, position = [], 0
    for traceback in tracebacks:
        end = traceback.end() if traceback is not tracebacks[-1] else traceback.end("stack")
        parts.append(text[position : traceback.start()])
        position = end
    parts.append(text[position:])
    for line in "".join(parts).splitlines():
        if line.strip() and not _BETWEEN_TRACEBACKS.match(line):
            yield line[:_LONGEST].rstrip()
