"""Are crashes of C programs told apart, and is the same crash the same fault?

    python benchmarks/native_identity.py [--quick]

Three programs have known, distinct places where they crash: an interpreter of a small stack
machine, a reader of records, and a store of keys. Each place is reached by several inputs that
differ in everything but the crash: other values, other work before, another size. The programs are
built by gcc and clang at -O0 to -O2 (a quick run: gcc, -O1), each without and with
AddressSanitizer. Two inputs are a pair. A pair of different places with one identity is *merged*, a
pair of one place with two identities is *split*. A place that does not crash in a build, such as a
read of freed memory without AddressSanitizer, is left out of that build and counted as *silent*.
The last column is what the name of the signal alone would merge.
"""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import arguments, print_figures, print_table, progress, require_programs

from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.coverage.native.program import Program

HEAD = """\
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline))
"""

MACHINE = (
    HEAD
    + """\
static long stack[32], *volatile rom;
static int top;
APART long pop(void) { return stack[--top & 31]; }
APART void push(long value) { stack[top++ & 31] = value; }
APART void divide(void) { long b = pop(), a = pop(); push(a / b); }
APART void modulo(void) { long b = pop(), a = pop(); push(a % b); }
APART void fetch(void) { push(rom[pop()]); }
APART void save(void) { long at = pop(); rom[at] = pop(); }
APART long call(long depth) { char frame[256]; memset(frame, (int)depth, 256);
  return call(depth + 1) + frame[depth & 255]; }
APART void halt(void) { abort(); }
APART void step(char op) {
  switch (op) {
  case '/': divide(); break;
  case '%': modulo(); break;
  case '@': fetch(); break;
  case '!': save(); break;
  case '(': push(call(pop())); break;
  case '#': halt(); break;
  case '+': push(pop() + pop()); break;
  }
}
int main(void) {
  char word[64];
  while (scanf("%60s", word) == 1)
    if (*word >= '0' && *word <= '9') push(atol(word)); else step(*word);
  return 0;
}
"""
)
RECORDS = (
    HEAD
    + """\
struct record { char *name; int fields; int *values; };
APART int name_of(struct record *r) { return r->name[0]; }
APART int first_value(struct record *r) { return r->values[0]; }
APART void check(struct record *r) { assert(r->fields < 90); }
APART int average(struct record *r) { return 1000 / r->fields; }
APART void release(struct record *r) { free(r->values); free(r->values); }
APART int after_free(struct record *r) { free(r->values); return r->values[1]; }
APART int beyond(struct record *r) { return r->values[r->fields + 2]; }
APART int read_record(char kind, struct record *r) {
  switch (kind) {
  case 'n': return name_of(r);
  case 'v': return first_value(r);
  case 'c': check(r); return 1;
  case 'a': return average(r);
  case 'r': release(r); return 2;
  case 'u': return after_free(r);
  case 'b': return beyond(r);
  }
  return 0;
}
int main(void) {
  char kind;
  int fields, sum = 0;
  while (scanf(" %c %d", &kind, &fields) == 2) {
    struct record r = {0, fields, 0};
    if (!strchr("nv", kind)) { r.values = calloc(fields + 1, sizeof(int)); r.name = "record"; }
    sum += read_record(kind, &r);
  }
  return sum & 1;
}
"""
)
KEYS = (
    HEAD
    + """\
struct node { int key; struct node *next; };
static struct node *volatile heads[8];
APART struct node *find(int key) { struct node *n = heads[key & 7];
  while (n->key != key) n = n->next; return n; }
APART int value_of(int key) { return find(key)->key * 2; }
APART void drop(int key) { struct node *n = find(key); n->next->key = 0; }
APART void insert(int key) { struct node *n = malloc(sizeof *n); n->key = key;
  n->next = heads[key & 7]; heads[key & 7] = n; }
APART int run(int (*action)(int), int key) { return action(key) + 1; }
APART void rebuild(void) { int (*volatile nothing)(int) = 0; run(nothing, 3); }
APART void audit(int key) { if (key > 50) __builtin_trap(); }
int main(void) {
  char op;
  int key, sum = 0;
  while (scanf(" %c %d", &op, &key) == 2)
    switch (op) {
    case 'i': insert(key); break;
    case 'v': sum += value_of(key); break;
    case 'd': drop(key); break;
    case 'r': rebuild(); break;
    case 'a': audit(key); break;
    }
  return sum & 1;
}
"""
)


@dataclass(frozen=True)
class Subject:
    """A program, and inputs for each place where it crashes."""

    name: str
    source: str
    places: Mapping[str, str]
    """What to append to harmless input; ``{n}`` is a number that varies."""
    harmless: str
    """Input that does not crash; it is repeated, with other numbers."""


SUBJECTS = (
    Subject(
        "machine",
        MACHINE,
        {
            "divide": "{n} 0 /",
            "modulo": "{n} 0 %",
            "fetch": "{n} @",
            "save": "{n} 3 !",
            "call": "{n} (",
            "halt": "{n} #",
        },
        "{n} 2 + 3 / ",
    ),
    Subject(
        "records",
        RECORDS,
        {
            "name_of": "n {n}",
            "first_value": "v {n}",
            "check": "c 9{n}",
            "average": "a 0",
            "release": "r {n}",
            "after_free": "u {n}",
            "beyond": "b {n}",
        },
        "a {n} c 1 ",
    ),
    Subject(
        "keys",
        KEYS,
        {
            "value_of": "v {n}1",
            "drop_missing": "d {n}2",
            "drop_last": "i {n} d {n}",
            "rebuild": "r {n}",
            "audit": "a 9{n}",
        },
        "i 6{n} v 6{n} ",
    ),
)
VARIANTS = 5


@dataclass
class Pairs:
    """How many pairs of inputs were judged, and how."""

    apart: int = 0
    """Pairs of different places."""
    together: int = 0
    merged: int = 0
    split: int = 0
    merged_by_signal: int = 0
    silent: int = 0
    """Places that did not crash."""
    examples: list[str] = field(default_factory=list)

    def add(self, crashes: list[tuple[str, str, str]]) -> None:
        """Add all pairs of crashes, each with place, identity and signal."""
        for (place, one, a), (other_place, other, b) in itertools.combinations(crashes, 2):
            if place == other_place:
                self.together += 1
                self.split += one != other
            else:
                self.apart += 1
                self.merged += one == other
                self.merged_by_signal += a == b
            if (place == other_place) != (one == other):
                self.examples.append(f"{place}: {one} / {other_place}: {other}")

    @property
    def wrong_percent(self) -> float:
        """The share of pairs that were merged or split wrongly."""
        return 100 * (self.merged + self.split) / max(self.apart + self.together, 1)


def inputs(subject: Subject, place: str) -> Iterator[bytes]:
    for n in range(1, VARIANTS + 1):
        yield (subject.harmless * (n - 1) + subject.places[place]).replace("{n}", str(n)).encode()


def crashes_of(subject: Subject, program: Program, pairs: Pairs) -> list[tuple[str, str, str]]:
    found = []
    for place in subject.places:
        faults = [(run.fault(), run.signal) for run in map(program.run, inputs(subject, place))]
        shown = [(place, f.signature, f"{s}") for f, s in faults if f is not None]
        pairs.silent += not shown
        found += shown
    return found


def main() -> None:
    options = arguments(__doc__)
    require_programs({"gcc": "gcc", "clang": "clang", "addr2line": "binutils"})
    builds = list(itertools.product(("gcc", "clang"), ("-O0", "-O1", "-O2")))
    results = {"": Pairs(), "address": Pairs()}
    with tempfile.TemporaryDirectory() as work:
        for compiler, level in [("gcc", "-O1")] if options.quick else builds:
            for subject, sanitize in itertools.product(SUBJECTS, results):
                progress(f"{subject.name}, {compiler} {level} {sanitize}".rstrip())
                source, program = Path(work, f"{subject.name}.c"), Path(work, subject.name)
                source.write_text(subject.source)
                words = [compiler, level, "-w", "-o", str(program), str(source)]
                subprocess.run(compiler_command(words, sanitize), check=True)
                with Program([program], fork_server=True, timeout=60) as tested:
                    pairs = results[sanitize]
                    pairs.add(crashes_of(subject, tested, pairs))
    head = ("build", "pairs", "merged", "split", "wrong", "silent", "merged by signal alone")
    rows = [
        (
            "AddressSanitizer" if name else "plain",
            f"{pairs.apart + pairs.together:,}",
            pairs.merged,
            pairs.split,
            f"{pairs.wrong_percent:.1f}%",
            pairs.silent,
            pairs.merged_by_signal,
        )
        for name, pairs in results.items()
    ]
    print_table(head, rows)
    for name, pairs in results.items():
        for example in dict.fromkeys(pairs.examples):
            print(f"{name or 'plain'}: {example}")
    plain, address = results[""], results["address"]
    print_figures(
        {
            "sites": sum(len(subject.places) for subject in SUBJECTS),
            "merged_asan": address.merged,
            "split_asan": address.split,
            "merged_plain": plain.merged,
            "split_plain": plain.split,
            "wrong_percent_asan": round(address.wrong_percent, 2),
            "wrong_percent_plain": round(plain.wrong_percent, 2),
            "silent_plain": plain.silent,
        }
    )


if __name__ == "__main__":
    main()
