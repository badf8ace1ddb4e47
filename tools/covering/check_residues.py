"""Which primes give quadratic residue covering arrays of which strength, for
`swarmtest.strategies.covering.constructions` and the residue part of `starters`.

    python tools/covering/check_residues.py 4 60 120

The squares modulo p stay the same under shifts and under multiplication by squares, so every set
of columns can be moved to one that contains 0 and 1 (or 0 and a non-square, if -1 is a square):
only those are looked at, but all of those. Strength 6 at 359 takes minutes. Needs numba.
"""

import argparse

import numpy as np
from numba import njit


def residue_rows(prime: int, constant_row: bool) -> np.ndarray:
    squares = np.zeros(prime, dtype=bool)
    squares[[x * x % prime for x in range(1, prime)]] = True
    rows = squares[(np.arange(prime)[None, :] - np.arange(prime)[:, None]) % prime]
    return np.vstack([rows, np.zeros((1, prime), dtype=bool)]) if constant_row else rows


def packed_columns(rows: np.ndarray) -> np.ndarray:
    padded = np.zeros((-(-len(rows) // 64) * 64, rows.shape[1]), dtype=bool)
    padded[: len(rows)] = rows
    return np.packbits(padded.T.copy(), axis=1).view(np.uint64)


@njit(cache=True)
def covers_all_around(columns, all_rows, second, t, complement):
    """Whether all sets of t columns that contain 0 and ``second`` show all patterns."""
    count, words = columns.shape
    split = np.zeros((t, 1 << t, words), np.uint64)
    split[0, 0] = all_rows
    chosen = np.zeros(t, np.int64)
    chosen[1] = second
    for depth in range(2):
        divide(split, depth, columns[chosen[depth]])
    depth = 2
    while depth >= 2:
        chosen[depth] += 1
        if chosen[depth] == second:
            chosen[depth] += 1
        if chosen[depth] >= count:
            depth -= 1
        elif depth < t - 1:
            divide(split, depth, columns[chosen[depth]])
            chosen[depth + 1] = chosen[depth]
            depth += 1
        elif not shows_all(split[depth], columns[chosen[depth]], 1 << depth, complement):
            return False
    return True


@njit(cache=True)
def divide(split, depth, column):
    for p in range(1 << depth):
        for w in range(len(column)):
            on = split[depth, p, w] & column[w]
            split[depth + 1, 2 * p + 1, w] = on
            split[depth + 1, 2 * p, w] = split[depth, p, w] ^ on


@njit(cache=True)
def shows_all(parts, column, size, complement):
    for p in range(size // 2 if complement else size):
        on, off = np.uint64(0), np.uint64(0)
        for w in range(len(column)):
            here = parts[p, w] & column[w]
            on |= here
            off |= parts[p, w] ^ here
            if complement:
                here = parts[size - 1 - p, w] & column[w]
                off |= here
                on |= parts[size - 1 - p, w] ^ here
        if on == 0 or off == 0:
            return False
    return True


def has_strength(prime: int, t: int, *, complement: bool, constant_row: bool) -> bool:
    rows = residue_rows(prime, constant_row)
    columns = packed_columns(rows)
    all_rows = packed_columns(np.ones((len(rows), 1), dtype=bool))[0]
    squares = {x * x % prime for x in range(1, prime)}
    seconds = [1]
    if prime - 1 in squares:
        seconds.append(next(x for x in range(2, prime) if x not in squares))
    return all(covers_all_around(columns, all_rows, s, t, complement) for s in seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("strength", "first", "last"):
        parser.add_argument(name, type=int)
    given = parser.parse_args()
    for prime in range(max(given.first, 7), given.last + 1):
        if any(prime % divisor == 0 for divisor in range(2, int(prime**0.5) + 1)):
            continue
        for complement, constant_row in ((False, False), (True, False), (True, True)):
            if has_strength(
                prime, given.strength, complement=complement, constant_row=constant_row
            ):
                rows = (prime + constant_row) << complement
                print(
                    f"strength {given.strength}: {rows} rows, {prime} columns"
                    f"{', with complement' * complement}{', constant rows' * constant_row}",
                    flush=True,
                )
                break


if __name__ == "__main__":
    main()
