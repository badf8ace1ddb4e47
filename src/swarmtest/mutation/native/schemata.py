"""All mutants of C files in one program, behind a selector that is read when it starts.

An expression becomes ``(mutant == 17 ? (a - b) : (a + b))``. Only one mutant is on at a time, so
the text of a mutant holds no other: the file grows by what mutants change, not by their products.
What is there stays, with text put before and behind it, and never a line more: a compiler's message
about a line is about the places on that line, so mutants that cannot be put into the program this
way are found by compiling it, and are left to be built one by one.

Every place also marks itself as reached, in memory that is shared with us if we ask for it. Byte 0
says that the program has run at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.mutation.native.c_file import CFile
from swarmtest.mutation.native.generating import CMutant
from swarmtest.mutation.native.spots import DECISION, STATEMENT, Spot

MUTANT, REACHED, LIMIT = "SWARMTEST_MUTANT", "SWARMTEST_REACHED", "SWARMTEST_MICROSECONDS"
"""Environment variables: the mutant's number; a file in which places mark themselves; CPU time
after which the program ends by a signal (SIGPROF), however busy the machine is."""

_BEFORE = "extern int swarmtest_mutant;extern unsigned char*swarmtest_reached;\n#line 1\n"
_BEHIND = """
#ifndef SWARMTEST_RUNTIME
#define SWARMTEST_RUNTIME
__attribute__((weak)) int swarmtest_mutant;
__attribute__((weak)) unsigned char swarmtest_nowhere[%(size)d];
__attribute__((weak)) unsigned char *swarmtest_reached = swarmtest_nowhere;
extern char *swarmtest_getenv(const char *) __asm__("getenv");
extern int swarmtest_open(const char *, int, ...) __asm__("open");
extern int swarmtest_close(int) __asm__("close");
extern void *swarmtest_mmap(void *, unsigned long, int, int, int, long) __asm__("mmap");
extern int swarmtest_setitimer(int, const long *, long *) __asm__("setitimer");
static long swarmtest_number(const char *name) {
  const char *text = swarmtest_getenv(name);
  long number = 0;
  while (text && *text)
    number = 10 * number + *text++ - '0';
  return number;
}
__attribute__((constructor)) static void swarmtest_start(void) {
  const char *path = swarmtest_getenv("%(reached)s");
  int file = path ? swarmtest_open(path, 2) : -1;
  long limit = swarmtest_number("%(limit)s"), timer[] = {0, 0, limit / 1000000, limit %% 1000000};
  swarmtest_mutant = swarmtest_number("%(mutant)s");
  if (limit)
    swarmtest_setitimer(2, timer, (long *)0);
  if (file >= 0 && swarmtest_reached == swarmtest_nowhere) {
    void *shared = swarmtest_mmap((void *)0, %(size)d, 3, 1, file, 0);
    if (shared != (void *)-1)
      swarmtest_reached = shared;
  }
  if (file >= 0)
    swarmtest_close(file);
  swarmtest_reached[0] = 1;
}
#endif
"""
_FLAT = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|/\*.*?\*/|//[^\n]*|\\?\r?\n""", re.DOTALL
)


@dataclass(frozen=True)
class Schema:
    """What of the mutants of some files is in one program."""

    texts: Mapping[str, bytes]
    """The files, by `Source.place`."""
    numbers: Mapping[str, int]
    """The selector's number of each mutant that is in it, by id."""
    sites: Mapping[str, int]
    """For a mutant's id the byte that is set where it is reached; a mutant that is not in the
    program may have the byte of its function. One without a byte has to be taken as reached."""
    size: int


def schema_of(
    files: Sequence[CFile], mutants: Iterable[CMutant], without: Mapping[str, set[int]]
) -> Schema:
    """The files with their mutants in them; not on the lines `without`, by `Source.place`."""
    numbers: dict[str, int] = {}
    sites: dict[str, int] = {}
    inserted: dict[str, _Inserted] = {file.source.place: _Inserted(file) for file in files}
    functions: dict[tuple[str, int], int] = {}
    by_spot: dict[tuple[str, Spot], list[CMutant]] = {}
    for one in mutants:
        by_spot.setdefault((one.file.source.place, one.spot), []).append(one)
    used = 1
    for (place, spot), group in by_spot.items():
        barred = without.get(place, set())
        if spot.switchable and barred.isdisjoint((spot.line, spot.last_line)):
            chosen = []
            for one in group:
                numbers[one.mutant.id] = len(numbers) + 1
                sites[one.mutant.id] = used
                chosen.append((numbers[one.mutant.id], one.mutant.change))
            inserted[place].put(spot, used, chosen)
            used += 1
        elif spot.body >= 0 and inserted[place].line_at(spot.body) not in barred:
            site = functions.get((place, spot.body), 0)
            if not site:
                functions[place, spot.body] = site = used
                inserted[place].mark(spot.body, site)
                used += 1
            sites |= {one.mutant.id: site for one in group}
    names = {"mutant": MUTANT, "reached": REACHED, "limit": LIMIT}
    behind = _BEHIND % {"size": used, **names}
    texts = {place: one.text(behind) for place, one in inserted.items()}
    return Schema(texts, numbers, sites, used)


class _Inserted:
    """Text to be put into a file, without moving what is there to other lines."""

    def __init__(self, file: CFile) -> None:
        self._file = file
        self._pieces: list[tuple[tuple[int, int, int, int], str]] = []

    def line_at(self, offset: int) -> int:
        return self._file.raw.count(b"\n", 0, offset) + 1

    def put(self, spot: Spot, site: int, chosen: list[tuple[int, str]]) -> None:
        """Text around a place: what its mutants do there if they are on."""
        mark = f"swarmtest_reached[{site}]=1"
        if spot.kind == STATEMENT:
            before, behind = f"{{if({mark},swarmtest_mutant!={chosen[0][0]}){{", "}}"
        elif spot.kind == DECISION:
            before, behind = f"({mark},(swarmtest_mutant=={chosen[0][0]})==!(", "))"
        else:
            texts = (f"swarmtest_mutant=={number}?({_flat(text)}):" for number, text in chosen)
            before, behind = f"({mark},{''.join(texts)}(", "))"
        # At one offset what ends comes first, the inner before the outer; then what begins, the
        # outer before the inner. Of places alike, the one found later is the inner one.
        order = len(self._pieces)
        self._pieces.append(((spot.start, 1, -spot.end, order), before))
        self._pieces.append(((spot.end, 0, -spot.start, -order), behind))

    def mark(self, body: int, site: int) -> None:
        """Text that says that a function was called."""
        self._pieces.append(((body, 0, 0, 0), f"swarmtest_reached[{site}]=1;"))

    def text(self, behind: str) -> bytes:
        raw, parts, done = self._file.raw, [_BEFORE.encode()], 0
        for (offset, *_), piece in sorted(self._pieces):
            parts += [raw[done:offset], piece.encode(self._file.encoding, "replace")]
            done = offset
        return b"".join([*parts, raw[done:], behind.encode()])


def _flat(text: str) -> str:
    """Code in one line, without comments.

    >>> _flat('a /* one */ + "//" // two\\n  * b')
    'a   + "//"     * b'
    """
    return _FLAT.sub(lambda found: found[1] or " ", text)
