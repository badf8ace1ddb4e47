"""From a C file to its mutants, and from a mutant back to the place that it changes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.errors import UserError
from swarmtest.mutation.mutant import Mutant
from swarmtest.mutation.native.c_file import CFile, c_file
from swarmtest.mutation.native.spots import Spot, spots_of
from swarmtest.mutation.operators import parse_operators
from swarmtest.targets import content_hash


@dataclass(frozen=True)
class CMutant:
    """A mutant with the place in the file that it changes."""

    mutant: Mutant
    file: CFile
    spot: Spot

    @property
    def text(self) -> bytes:
        """The whole file, mutated; its lines keep their numbers."""
        return self.file.changed(self.spot.start, self.spot.end, self.mutant.change)


def c_mutants_of(
    path: str | Path, operators: str | Collection[str] = "", lines: Collection[int] | None = None
) -> list[Mutant]:
    """The mutants of a C file, in the order of its text; only those on `lines`, if any are given.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
    ...     _ = file.write("int least(int a, int b) { return a < b ? a : b; }")
    ...     file.flush()
    ...     mutants = c_mutants_of(file.name, "negate,relational")
    >>> print(mutants[-1].after)
    int least(int a, int b) { return a != b ? a : b; }
    """
    return [one.mutant for one in mutants_in(c_file(path), operators, lines)]


def mutants_in(
    file: CFile, operators: str | Collection[str] = "", lines: Collection[int] | None = None
) -> list[CMutant]:
    """The mutants of a file with their places."""
    chosen = parse_operators(operators if isinstance(operators, str) else ",".join(operators))
    wanted = None if lines is None else frozenset(lines)
    return [
        one
        for one in _all_mutants(file)
        if one.mutant.operator in chosen and (wanted is None or one.mutant.line in wanted)
    ]


def found_again(files: Sequence[CFile], mutants: Sequence[Mutant]) -> list[CMutant]:
    """Mutants with their places, in the files as they are now; one that is no more is an error."""
    known: Mapping[tuple[str, str], CMutant] = {
        (one.mutant.path, one.mutant.id): one for file in files for one in _all_mutants(file)
    }
    for mutant in mutants:
        if (mutant.path, mutant.id) not in known:
            raise UserError(
                f"mutant {mutant.id} of {mutant.path}:{mutant.line} is there no more: "
                "the file was changed since"
            )
    return [known[mutant.path, mutant.id] for mutant in mutants]


def _all_mutants(file: CFile) -> Iterator[CMutant]:
    ordinals: Counter[str] = Counter()
    for spot in spots_of(file):
        before, head, tail = _lines(file, spot)
        for operator, change in spot.changes:
            statement = content_hash(spot.statement)
            parts = (file.source.path, spot.function, statement, operator, before.strip(), change)
            said = "\0".join(parts)
            ordinals[said] += 1
            digest = hashlib.blake2b(
                f"{said}\0{ordinals[said]}".encode(errors="surrogatepass"), digest_size=5
            )
            mutant = Mutant(
                digest.hexdigest(),
                file.source.path,
                spot.line,
                spot.function,
                operator,
                before,
                f"{head}{change.rstrip()}{tail}",
                (("start", spot.start), ("end", spot.end)),
                change,
                spot.statement,
            )
            yield CMutant(mutant, file, spot)


def _lines(file: CFile, spot: Spot) -> tuple[str, str, str]:
    """The lines of a place, and what is on them before and behind it."""
    first = file.raw.rfind(b"\n", 0, spot.start) + 1
    last = file.raw.find(b"\n", spot.end)
    last = len(file.raw) if last < 0 else last
    before = file.text(first, last).replace("\r", "")
    return before, file.text(first, spot.start), file.text(spot.end, last).replace("\r", "")
