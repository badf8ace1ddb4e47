"""A kill matrix as text for the terminal, and as plain data."""

from __future__ import annotations

from typing import Any

from swarmtest.mutation import KillMatrix, Mutant
from swarmtest.report.terminal import plural, table

_SHOWN = 10
"""Survivors that are shown with their diff."""


def mutation_text(matrix: KillMatrix, everything: bool = False) -> str:
    """The score, what became of the mutants, survivors, and the smallest suite."""
    parts = [
        _score(matrix),
        _counts(matrix),
        _left_out(matrix),
        _survivors(matrix, everything),
        _smallest(matrix),
    ]
    return "\n\n".join(filter(None, parts))


def mutation_data(matrix: KillMatrix) -> dict[str, Any]:
    """The same as dictionaries and lists."""
    low, high = matrix.interval()
    return {
        "score": matrix.score,
        "interval": [low, high],
        "mutants": [_mutant(matrix, number) for number in range(len(matrix.mutants))],
        "tests": list(matrix.tests),
        "population": matrix.population or len(matrix.mutants),
        "equivalent": matrix.equivalent,
        "duplicate": matrix.duplicate,
        "not_compiled": matrix.not_compiled,
        "left_out": {why: list(tests) for why, tests in matrix.left_out.items()},
        "not_switchable": [mutant.id for mutant in matrix.not_switchable],
        "breaks_import": [mutant.id for mutant in matrix.broken],
        "complete": matrix.complete,
        "minimal_tests": matrix.minimal_tests,
        "minimal_mutants": [mutant.id for mutant in matrix.minimal_mutants],
    }


def _mutant(matrix: KillMatrix, number: int) -> dict[str, Any]:
    mutant = matrix.mutants[number]
    return {
        "id": mutant.id,
        "file": mutant.path,
        "line": mutant.line,
        "function": mutant.function,
        "operator": mutant.operator,
        "diff": mutant.diff_text,
        "reached": bool(matrix.reached[number].any()),
        "killed_by": [
            test for test, kills in zip(matrix.tests, matrix.killed[number], strict=True) if kills
        ],
    }


def _score(matrix: KillMatrix) -> str:
    killed = int(matrix.is_killed.sum())
    text = f"{matrix.score:.0%} of {plural(len(matrix.mutants), 'mutant')} killed ({killed:,})"
    low, high = matrix.interval()
    if high > low:
        text += (
            f"; a sample of {matrix.population:,}, of which {low:.0%} to {high:.0%} are killed "
            "(95%)"
        )
    return f"{text} by {plural(len(matrix.tests), 'test')}"


def _counts(matrix: KillMatrix) -> str:
    killed = int(matrix.is_killed.sum())
    rows = [
        ("killed", f"{killed:,}", _how_killed(matrix)),
        ("survived", f"{len(matrix.survivors):,}", "tests reach them and notice nothing"),
        ("not reached", f"{len(matrix.not_reached):,}", "no test executes them"),
        ("equivalent", f"{matrix.equivalent:,}", "compile to the same code: left out"),
        ("duplicate", f"{matrix.duplicate:,}", "compile to what another does: left out"),
        ("not compiled", f"{matrix.not_compiled:,}", "the compiler refuses them: left out"),
        (
            "not switchable",
            f"{len(matrix.not_switchable):,}",
            "run at import, before mutants could be made, or not live: left out",
        ),
    ]
    rows = [row for row in rows if row[1] != "0" or row[0] in ("killed", "survived")]
    return str(table(("mutants", "", ""), rows, right=" r"))


def _left_out(matrix: KillMatrix) -> str:
    """Tests that could not be used."""
    return "\n".join(
        f"left out: {plural(len(tests), 'test')} ({', '.join(tests[:3])}"
        f"{', ...' if len(tests) > 3 else ''}): {why}"
        for why, tests in matrix.left_out.items()
    )


def _how_killed(matrix: KillMatrix) -> str:
    endless, broken = len(matrix.endless), len(matrix.broken)
    told = [
        f"{endless:,} of them never ended" if endless else "",
        f"{broken:,} of them cannot be imported" if broken else "",
    ]
    return ", ".join(filter(None, told))


def _survivors(matrix: KillMatrix, everything: bool) -> str:
    survivors = matrix.survivors
    if not survivors:
        return ""
    shown = survivors if everything else survivors[:_SHOWN]
    texts = [
        f"survived: mutant {mutant.id} ({mutant.operator})\n{_diff(mutant)}" for mutant in shown
    ]
    hidden = len(survivors) - len(shown)
    if hidden:
        texts.append(f"... and {hidden:,} more that survived: --all")
    return "\n\n".join(texts)


def _diff(mutant: Mutant) -> str:
    return "\n".join(f"  {line}" for line in mutant.diff_text.splitlines())


def _smallest(matrix: KillMatrix) -> str:
    if not matrix.complete or not matrix.is_killed.any():
        return ""
    tests, mutants = matrix.minimal_tests, matrix.minimal_mutants
    exact = "" if matrix.minimal_is_exact else " or fewer"
    names = ", ".join(tests[:8]) + (", ..." if len(tests) > 8 else "")
    kill = "kills" if len(tests) == 1 else "kill"
    stand, them = ("stands", "it") if len(mutants) == 1 else ("stand", "them")
    return (
        f"{plural(len(tests), 'test')}{exact} {kill} all that are killed: {names}\n"
        f"{plural(len(mutants), 'mutant')} {stand} for all: whoever kills {them} kills the others, "
        "by these tests"
    )
