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
from swarmtest.mutate.native.generation import DECISION, STATEMENT, CMutant, Spot
from swarmtest.processes.scratch import Scratch
from swarmtest.subjects.command.specification import Specification, Step
from swarmtest.subjects.command.step_runner import Stepper
from swarmtest.subjects.command.steps import Caller, Outcome
from swarmtest.subjects.command.test import CommandTest

# -------------------------------------------------------------------------------------------------
# What a test makes a program do, as a value: a mutant is killed if it is another one.
#
# Seen are how each step ended, what it printed, and the files that are left in the test's
# directory.
# Names of directories that are others in every run are taken out of all of these.

_TIMES = 10.0
"""How much longer than the original a mutant may take ..."""
_AT_LEAST = 1.0
"""... but so many seconds in any case ..."""
_AT_LEAST_CPU = 0.1
"""... and so many of CPU time, which says more on a busy machine."""


@dataclass(frozen=True)
class Seen:
    """What was seen of one run."""

    digest: bytes
    """The same means: nothing to tell the runs apart."""
    seconds: float
    cpu_seconds: float
    timed_out: bool
    crashed: bool
    broken: str = ""
    """Why a step could not be started at all."""

    @property
    def limit(self) -> float:
        """The seconds that a mutant has for each step of the same test."""
        return max(_AT_LEAST, _TIMES * self.seconds)

    @property
    def cpu_limit(self) -> float:
        """The same of CPU time."""
        return max(_AT_LEAST_CPU, _TIMES * self.cpu_seconds)

    def outcome(self, mutant: Seen) -> int:
        """What a mutant's run is beside this one of the original: an entry of a kill matrix."""
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
    ) -> Seen:
        """Run a test (JSON data) with the programs in `here`; `limit`: seconds for each step."""
        steps = tuple(_changed(step, env or {}, limit) for step in self._spec.steps)
        spec = replace(self._spec, path=here / self._spec.path.name, steps=steps)
        stepper = Stepper(spec, self.scratch, Caller(self.scratch, spec.here))
        digest = hashlib.blake2b(digest_size=16)
        began = time.monotonic()
        names = (spec.here.encode(), b"{here}")
        stepped = stepper.run(
            CommandTest.from_json(test), lambda directory: _files(directory, names, digest)
        )
        seconds = time.monotonic() - began
        outcomes = list(stepped.outcomes.values())
        for outcome in outcomes:
            digest.update(repr(_told(outcome)).encode())
        broken = next((one.skipped for one in outcomes if one.broken), "")
        return Seen(
            digest.digest(),
            seconds,
            stepped.cpu_seconds,
            any(_timed_out(one) for one in outcomes),
            any(one.signal for one in outcomes),
            broken,
        )


def _changed(step: Step, env: Mapping[str, str], limit: float | None) -> Step:
    """A step as mutants run it: without coverage, with another environment and time limit."""
    timeout = step.call.timeout if limit is None else min(limit, step.call.timeout)
    call = replace(step.call, env={**step.call.env, **env}, timeout=timeout)
    return replace(step, call=call, cover="")


def _timed_out(outcome: Outcome) -> bool:
    return outcome.timed_out or outcome.signal == signal.SIGPROF


def _told(outcome: Outcome) -> tuple[object, ...]:
    if _timed_out(outcome):
        return outcome.name, "timeout"  # how far it came is a matter of luck
    how = (outcome.status, outcome.signal, outcome.skipped)
    return (outcome.name, *how, outcome.stdout, outcome.stderr)


def _files(directory: Path, names: tuple[bytes, bytes], digest: Any) -> None:
    """Hash all that is in a directory."""
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


# -------------------------------------------------------------------------------------------------

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
