"""Mutants of C programs per second: one program for all of them, beside a program for each.

    python benchmarks/mutation_native.py [--quick]

The program is `mutation_subjects/calculator.c`, and tests are lines for it. All ways start from
nothing (no cache). For every mutant and every test, whether the test kills it:

* swarmtest: all mutants that can be switched at run time are in one program;
* the same with a program for each mutant, which has to tell the same (`differing_verdicts`).

For every mutant, whether any test kills it, without going on after the first that does:

* swarmtest;
* universalmutator.

Rates are mutants by seconds of CPU time; a way that drops equivalent mutants has spent time on them
as well. `--quick` takes fewer tests and kinds of mutants, and leaves universalmutator out. The last
line is one JSON object.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import (
    arguments,
    cpu_seconds,
    print_figures,
    print_table,
    progress,
    require_modules,
    require_programs,
)
from mutation_peers import PEERS, Peer, _call, _cpu

from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.native.build import BuiltMutants
from swarmtest.mutate.native.generation import c_mutants_of
from swarmtest.mutate.native.kill_matrix import native_kill_matrix
from swarmtest.subjects.command.subject import CommandSubject, load_command_subject

HERE = Path(__file__).resolve().parent
LONGEST = 300.0  # seconds of wall time for universalmutator
TOML = """\
[generate]
command = "echo {seed} {features}"

[features]
plus = "+"

[[steps]]
run = "{here}/calculator {test}"
expect = "any"

[mutate]
build = "gcc -O1 -o calculator calculator.c"
"""
CHECK = """\
gcc -w -O1 -o calculator calculator.c || exit 1
for test in tests/*.txt; do
  ./calculator $test > out; echo $? >> out
  cmp -s out ${test%.txt}.expected || exit 1
done
"""


@dataclass(frozen=True)
class Measured:
    """What one way did."""

    name: str
    mutants: int
    seconds: float
    dropped: int
    """As equivalent to the program, or to another mutant."""

    @property
    def rate(self) -> float:
        return self.mutants / self.seconds

    @property
    def row(self) -> list[str]:
        figures = (f"{self.mutants:,}", f"{self.dropped:,}")
        return [self.name, *figures, f"{self.seconds:.1f}", f"{self.rate:.1f}"]


def test_texts(count: int) -> list[str]:
    """Lines for the calculator."""
    rng = random.Random(7)
    words = [*"+-*/^<#", *map(str, range(6))]
    return [
        "".join(
            " ".join(
                [str(rng.randrange(40)), str(rng.randrange(9)), *rng.choices(words, k=6), "\n"]
            )
            for _ in range(4)
        )
        for _ in range(count)
    ]


@contextmanager
def subject() -> Iterator[CommandSubject]:
    """The program in a directory of its own, and a cache that is empty."""
    before = os.environ.get("XDG_CACHE_HOME")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        shutil.copy(HERE / "mutation_subjects" / "calculator.c", place)
        (place / "calculator.toml").write_text(TOML)
        os.environ["XDG_CACHE_HOME"] = str(place / ".cache")
        try:
            yield load_command_subject(str(place / "calculator.toml"))
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before


def name_of(mutant: Mutant) -> str:
    """The same in whatever directory the program is."""
    return f"{mutant.line} {mutant.operator} {mutant.after}"


def together(
    tests: dict[str, Any], operators: str, first_kill: bool = False
) -> tuple[Measured, set[tuple[str, str]]]:
    """What users get."""
    with subject() as calculator:
        start = cpu_seconds()
        matrix = native_kill_matrix(calculator, tests, operators=operators, first_kill=first_kill)
        seconds = cpu_seconds() - start
    killed = {
        (name_of(mutant), test) for mutant in matrix.mutants for test in matrix.killers(mutant)
    }
    dropped = matrix.equivalent + matrix.duplicate
    name = f"swarmtest, {'first kill' if first_kill else 'every test'}"
    return Measured(name, len(matrix.mutants), seconds, dropped), killed


def apart(tests: dict[str, Any], operators: str) -> tuple[Measured, set[tuple[str, str]]]:
    """The same mutants, a program for each."""
    with subject() as calculator:
        start = cpu_seconds()
        mutants = c_mutants_of(Path(calculator.spec.here) / "calculator.c", operators)
        with BuiltMutants(calculator, mutants, one_by_one=True) as built:
            killed = {
                (name_of(mutant), name)
                for name, test in tests.items()
                for mutant in built.kills(test)
            }
            count, sifted = len(built.mutants), built.sifted
        seconds = cpu_seconds() - start
    dropped = sifted.equivalent + sifted.duplicate
    return Measured("a program for each, every test", count, seconds, dropped), killed


def universalmutator(texts: list[str]) -> Measured:
    """Its mutants, by its own driver, with a script that builds and tests."""
    (peer,) = (one for one in PEERS if one.name == "universalmutator")
    peer.install()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "tests").mkdir()
        (place / "mutants").mkdir()
        shutil.copy(HERE / "mutation_subjects" / "calculator.c", place)
        for number, text in enumerate(texts):
            (place / "tests" / f"{number}.txt").write_text(text)
        (place / "check.sh").write_text(CHECK)
        expected = CHECK.replace("> out;", "> ${test%.txt}.expected;").replace(
            ">> out\n", ">> ${test%.txt}.expected\n"
        )
        _call(["sh", "-c", expected.replace("cmp -s out", "true #")], place, LONGEST, place)
        return _analysed(peer, place)


def _analysed(peer: Peer, place: Path) -> Measured:
    before = _cpu()
    make: list[object] = [peer.programs / "mutate", "calculator.c", "--mutantDir", "mutants"]
    make += ["--cmd", "gcc -w -O3 -c -o /dev/null calculator.c"]
    said = _call(make, place, 20 * LONGEST, peer.programs)
    dropped = re.search(r"(\d+) REDUNDANT", said.text)
    made = len(list((place / "mutants").iterdir()))
    making, before = _cpu() - before, _cpu()
    analyse: list[object] = [peer.programs / "analyze_mutants", "calculator.c", "sh check.sh"]
    analyse += ["--mutantDir", "mutants", "--timeout", 5, "--seed", 1]
    said = _call(analyse, place, LONGEST, peer.programs)
    files = [place / name for name in ("killed.txt", "notkilled.txt")]
    count = sum(len(file.read_text().splitlines()) for file in files if file.exists())
    if not count:
        raise RuntimeError(f"universalmutator: {said.text[-500:]}")
    # Of making mutants, what belongs to those that there was time for.
    seconds = making * count / made + _cpu() - before + said.hidden
    name = f"{peer.name}, first kill"
    return Measured(name, count, seconds, int(dropped[1]) if dropped else 0)


def main() -> None:
    """Measure, and print a table and the figures."""
    quick = arguments(__doc__).quick
    require_modules({"tree_sitter_c": "'swarmtest[c]'"})
    require_programs({"gcc": "gcc"})
    texts = test_texts(4 if quick else 20)
    operators = "negate,logical,bitwise" if quick else ""
    tests = {
        str(number): {
            "format": "swarmtest command test 1",
            "subject": "calculator.toml",
            "text": text,
        }
        for number, text in enumerate(texts)
    }
    progress("one program for all mutants")
    one, one_kills = together(tests, operators)
    progress("a program for each mutant")
    each, each_kills = apart(tests, operators)
    progress("one program for all mutants, up to the first kill")
    first, _ = together(tests, operators, first_kill=True)
    measured = [one, each, first]
    if quick:
        print("universalmutator is not run: it takes minutes\n")
    else:
        progress("universalmutator")
        measured.append(universalmutator(texts))
    print_table(
        ("", "mutants", "equivalent", "CPU s", "mutants per CPU s"),
        [found.row for found in measured],
    )
    figures: dict[str, object] = {
        "mutants": one.mutants,
        "equivalent": one.dropped,
        "score": round(len({mutant for mutant, _ in one_kills}) / one.mutants, 3),
        "mutants_per_second": round(one.rate, 2),
        "first_kill_per_second": round(first.rate, 2),
        "vs_one_by_one": round(one.rate / each.rate, 2),
        "differing_verdicts": len(one_kills ^ each_kills),
    }
    if not quick:
        figures["vs_universalmutator"] = round(first.rate / measured[3].rate, 2)
    print_figures(figures)


if __name__ == "__main__":
    main()
