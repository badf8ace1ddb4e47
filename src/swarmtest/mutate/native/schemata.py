"""Mutant schemata: many mutants of C files in one program, and runs of that program.

A selector that is read when the program starts switches one mutant on. An expression becomes
``(mutant == 17 ? (a - b) : (a + b))``. Only one mutant is on at a time, so the text of a mutant
contains no other mutant, and the file grows with the number of mutants, not of their combinations.
The original text stays, with text inserted before and after it but never a line break. So a
compiler's message about a line concerns the spots on that line: mutants that cannot be inserted in
this way are found by compiling the program, and are built one by one.

Every spot also marks itself as reached, in memory that is shared with swarmtest on request. Byte 0
says that the program ran at all.

`Observer` runs a test and reduces what it makes the program do to a hash: how each step ended, what
it printed, and the files that are left in the test's directory. A mutant is killed if the hash
differs. Names of directories that differ in every run are removed first.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swarmtest.languages.c.syntax_tree import CFile
from swarmtest.mutate.kill_matrix import CRASHED, FAILED, PASSED, SLOW
from swarmtest.mutate.native.generation import DECISION, STATEMENT, CMutant, CodeSpot
from swarmtest.processes.scratch import Scratch
from swarmtest.subjects.command.specification import Specification, StepSection
from swarmtest.subjects.command.step_runner import CommandRunner, StepOutcome, StepRunner
from swarmtest.subjects.command.test import CommandTest

MUTANT, REACHED, LIMIT = "SWARMTEST_MUTANT", "SWARMTEST_REACHED", "SWARMTEST_MICROSECONDS"
"""Environment variables: the number of the mutant; the file in which spots mark themselves; and the
CPU time after which a signal (SIGPROF) ends the program, however busy the machine is."""

_BEFORE = "extern int swarmtest_mutant;extern unsigned char*swarmtest_reached;\n#line 1\n"
_AFTER = """
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
_COMMENT_OR_NEWLINE = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|/\*.*?\*/|//[^\n]*|\\?\r?\n""", re.DOTALL
)


@dataclass(frozen=True)
class Schema:
    """Files with mutants inserted, for one program."""

    texts: Mapping[str, bytes]
    """The text of each file, by `Source.place`."""
    numbers: Mapping[str, int]
    """The selector's number of each mutant in the program, by its id."""
    sites: Mapping[str, int]
    """The byte that is set when a mutant is reached, by the mutant's id. A mutant that is not in
    the program may have the byte of its function. One without a byte must be taken as reached."""
    size: int
    """The number of bytes for marks."""


def schema_of(
    files: Sequence[CFile], mutants: Iterable[CMutant], without: Mapping[str, set[int]]
) -> Schema:
    """Insert mutants into files, but not on the lines `without`, by `Source.place`."""
    numbers: dict[str, int] = {}
    sites: dict[str, int] = {}
    inserted: dict[str, _Insertions] = {file.source.place: _Insertions(file) for file in files}
    functions: dict[tuple[str, int], int] = {}
    by_spot: dict[tuple[str, CodeSpot], list[CMutant]] = {}
    for c_mutant in mutants:
        by_spot.setdefault((c_mutant.file.source.place, c_mutant.spot), []).append(c_mutant)
    used = 1
    for (place, spot), group in by_spot.items():
        barred = without.get(place, set())
        if spot.switchable and barred.isdisjoint((spot.line, spot.last_line)):
            alternatives = []
            for c_mutant in group:
                mutant = c_mutant.mutant
                numbers[mutant.id] = len(numbers) + 1
                sites[mutant.id] = used
                alternatives.append((numbers[mutant.id], mutant.change))
            inserted[place].put(spot, used, alternatives)
            used += 1
        elif spot.body >= 0 and inserted[place].line_at(spot.body) not in barred:
            site = functions.get((place, spot.body), 0)
            if not site:
                functions[place, spot.body] = site = used
                inserted[place].mark(spot.body, site)
                used += 1
            sites |= {c_mutant.mutant.id: site for c_mutant in group}
    names = {"mutant": MUTANT, "reached": REACHED, "limit": LIMIT}
    runtime = _AFTER % {"size": used, **names}
    texts = {place: insertions.text(runtime) for place, insertions in inserted.items()}
    return Schema(texts, numbers, sites, used)


class _Insertions:
    """Text to insert into a file without changing the line of anything in it."""

    def __init__(self, file: CFile) -> None:
        self._file = file
        self._pieces: list[tuple[tuple[int, int, int, int], str]] = []

    def line_at(self, offset: int) -> int:
        return self._file.raw.count(b"\n", 0, offset) + 1

    def put(self, spot: CodeSpot, site: int, alternatives: list[tuple[int, str]]) -> None:
        """Insert text around a spot that selects among its mutants, given by number and text."""
        mark = f"swarmtest_reached[{site}]=1"
        if spot.kind == STATEMENT:
            before, after = f"{{if({mark},swarmtest_mutant!={alternatives[0][0]}){{", "}}"
        elif spot.kind == DECISION:
            before, after = f"({mark},(swarmtest_mutant=={alternatives[0][0]})==!(", "))"
        else:
            texts = (
                f"swarmtest_mutant=={number}?({_flat(text)}):" for number, text in alternatives
            )
            before, after = f"({mark},{''.join(texts)}(", "))"
        # At the same offset, ends come first, inner before outer; then beginnings, outer before
        # inner. Of two spots with the same extent, the one found later is the inner one.
        order = len(self._pieces)
        self._pieces.append(((spot.start, 1, -spot.end, order), before))
        self._pieces.append(((spot.end, 0, -spot.start, -order), after))

    def mark(self, body: int, site: int) -> None:
        """Insert text that marks a function as called."""
        self._pieces.append(((body, 0, 0, 0), f"swarmtest_reached[{site}]=1;"))

    def text(self, after: str) -> bytes:
        """Return the file with all insertions, and `after` at its end."""
        raw, parts, done = self._file.raw, [_BEFORE.encode()], 0
        for (offset, *_), piece in sorted(self._pieces):
            parts += [raw[done:offset], piece.encode(self._file.encoding, "replace")]
            done = offset
        return b"".join([*parts, raw[done:], after.encode()])


def _flat(text: str) -> str:
    """Return code on one line, without comments.

    >>> _flat('a /* one */ + "//" // two\\n  * b')
    'a   + "//"     * b'
    """
    return _COMMENT_OR_NEWLINE.sub(lambda match: match[1] or " ", text)


# Running tests.

_SLOWDOWN_ALLOWED = 10.0
"""How many times longer than the original a mutant may take."""
_LEAST_SECONDS = 1.0
"""A mutant may always take this many seconds."""
_LEAST_CPU_SECONDS = 0.1
"""A mutant may always take this much CPU time, which is more reliable on a busy machine."""


@dataclass(frozen=True)
class RunRecord:
    """What was seen of one run."""

    digest: bytes
    """A hash of everything that was seen; runs with equal hashes are equal."""
    seconds: float
    cpu_seconds: float
    timed_out: bool
    crashed: bool
    broken: str = ""
    """Why a step could not be started at all."""

    @property
    def limit(self) -> float:
        """The seconds that a mutant may take for each step of the same test."""
        return max(_LEAST_SECONDS, _SLOWDOWN_ALLOWED * self.seconds)

    @property
    def cpu_limit(self) -> float:
        """The seconds of CPU time that a mutant may take."""
        return max(_LEAST_CPU_SECONDS, _SLOWDOWN_ALLOWED * self.cpu_seconds)

    def outcome(self, mutant: RunRecord) -> int:
        """Compare a mutant's run with this run of the original; return a kill matrix's entry."""
        if mutant.digest == self.digest:
            return PASSED
        if mutant.timed_out and not self.timed_out:
            return SLOW
        return CRASHED if mutant.crashed and not self.crashed else FAILED


class Observer:
    """Runs the steps of a command subject with programs that are built in other directories."""

    def __init__(self, spec: Specification) -> None:
        self._spec = spec
        self.scratch = Scratch()

    def see(
        self,
        test: Any,
        here: Path,
        env: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> RunRecord:
        """Run a test (JSON data) with the programs in `here`; `limit` is in seconds per step."""
        steps = tuple(_changed(step, env or {}, limit) for step in self._spec.steps)
        spec = replace(self._spec, path=here / self._spec.path.name, steps=steps)
        stepper = StepRunner(spec, self.scratch, CommandRunner(self.scratch, spec.here))
        digest = hashlib.blake2b(digest_size=16)
        began = time.monotonic()
        names = (spec.here.encode(), b"{here}")
        stepped = stepper.run(
            CommandTest.from_json(test), lambda directory: _files(directory, names, digest)
        )
        seconds = time.monotonic() - began
        outcomes = list(stepped.outcomes.values())
        for outcome in outcomes:
            digest.update(repr(_observable(outcome)).encode())
        broken = next((outcome.skipped for outcome in outcomes if outcome.broken), "")
        return RunRecord(
            digest.digest(),
            seconds,
            stepped.cpu_seconds,
            any(_timed_out(outcome) for outcome in outcomes),
            any(outcome.signal for outcome in outcomes),
            broken,
        )


def _changed(step: StepSection, env: Mapping[str, str], limit: float | None) -> StepSection:
    """Return a step as mutants run it: without coverage, with another environment and limit."""
    timeout = step.call.timeout if limit is None else min(limit, step.call.timeout)
    call = replace(step.call, env={**step.call.env, **env}, timeout=timeout)
    return replace(step, call=call, cover="")


def _timed_out(outcome: StepOutcome) -> bool:
    return outcome.timed_out or outcome.signal == signal.SIGPROF


def _observable(outcome: StepOutcome) -> tuple[object, ...]:
    if _timed_out(outcome):
        return outcome.name, "timeout"  # how far it got differs from run to run
    how = (outcome.status, outcome.signal, outcome.skipped)
    return (outcome.name, *how, outcome.stdout, outcome.stderr)


def _files(directory: Path, names: tuple[bytes, bytes], digest: Any) -> None:
    """Add everything in a directory to a hash."""
    own = str(directory).encode()
    for place, folders, files in os.walk(directory):
        folders.sort()
        for name in sorted([*files, *folders]):
            path = os.path.join(place, name)
            digest.update(os.path.relpath(path, directory).encode(errors="surrogateescape") + b"\0")
            if os.path.islink(path):
                digest.update(os.readlink(path).encode(errors="surrogateescape"))
            elif os.path.isfile(path):
                content = Path(path).read_bytes() if os.access(path, os.R_OK) else b""
                content = content.replace(own, b"{dir}").replace(*names)
                digest.update(hashlib.blake2b(content).digest())
