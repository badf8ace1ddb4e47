"""Search starter vectors for `swarmtest.strategies.covering.constructions` by simulated annealing.

    python tools/covering/search_starters.py 4 67 2 3 --order 11 --seeds 40

looks for a strength 4 array of 2 x 3 circulant blocks of size 67 (134 rows, 201 columns) whose
starters are unions of orbits of the multipliers of order 11, and prints it as a Python literal.
Symmetry leaves 90,000 sets of columns to look at instead of 66 million. Needs numba.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from numba import njit


@dataclass(frozen=True)
class Shape:
    strength: int
    n: int
    row_blocks: int
    column_blocks: int
    order: int
    constant_rows: int
    complement: bool

    @property
    def base_rows(self) -> int:
        return self.n * self.row_blocks + self.constant_rows

    @property
    def rows(self) -> int:
        return self.base_rows << self.complement


def multiplier_of_order(n: int, order: int) -> int:
    for candidate in range(1, n + 1):
        power, steps = candidate % n, 1
        while power not in (0, 1 % n) and steps <= order:
            power, steps = power * candidate % n, steps + 1
        if power == 1 % n and steps == order:
            return candidate
    raise SystemExit(f"no multiplier modulo {n} has order {order}")


def powers(multiplier: int, n: int) -> np.ndarray:
    found = [1]
    while found[-1] * multiplier % n != 1 % n:
        found.append(found[-1] * multiplier % n)
    return np.array(found)


def orbit_numbers(n: int, multipliers: np.ndarray) -> np.ndarray:
    least = [min(x * int(m) % n for m in multipliers) for x in range(n)]
    number = {x: i for i, x in enumerate(sorted(set(least)))}
    return np.array([number[x] for x in least])


@njit(cache=True)
def is_least_of_its_orbit(chosen, n, multipliers):
    t = len(chosen)
    block = chosen[0] // n
    image = np.empty(t, np.int64)
    for m in multipliers:
        for anchor in chosen:
            if anchor // n != block:
                break
            shift = anchor % n * m % n
            for k in range(t):
                value = chosen[k] // n * n + (chosen[k] % n * m - shift) % n
                j = k
                while j > 0 and image[j - 1] > value:
                    image[j] = image[j - 1]
                    j -= 1
                image[j] = value
            for k in range(t):
                if image[k] != chosen[k]:
                    if image[k] < chosen[k]:
                        return False
                    break
    return True


@njit(cache=True)
def list_orbits(n, blocks, t, multipliers, out):
    """One set of columns per orbit into ``out``, as far as it has room; returns how many."""
    columns = n * blocks
    count = 0
    chosen = np.empty(t, np.int64)
    for block in range(blocks):
        for k in range(t):
            chosen[k] = block * n + k
        if chosen[t - 1] >= columns:
            break
        while True:
            if is_least_of_its_orbit(chosen, n, multipliers):
                if count < len(out):
                    out[count] = chosen
                count += 1
            k = t - 1
            while k >= 1 and chosen[k] == columns - t + k:
                k -= 1
            if k == 0:
                break
            chosen[k] += 1
            for later in range(k + 1, t):
                chosen[later] = chosen[later - 1] + 1
    return count


@njit(cache=True)
def pack_columns(n, bits, constant, orbit, packed):
    packed[:] = 0
    row_blocks, column_blocks, _ = bits.shape
    for r in range(row_blocks):
        for c in range(column_blocks):
            for d in range(n):
                if bits[r, c, orbit[d]]:
                    for i in range(n):
                        row = r * n + i
                        column = c * n + (i + d) % n
                        packed[column, row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    for e in range(len(constant)):
        row = row_blocks * n + e
        for c in range(column_blocks):
            if constant[e, c]:
                for j in range(n):
                    packed[c * n + j, row >> 6] |= np.uint64(1) << np.uint64(row & 63)


@njit(cache=True)
def missing(packed, sets, all_rows, limit, complement, split):
    """How many patterns the sets miss. Sets that miss some move forward, for a quick "too many"."""
    t, words = sets.shape[1], len(all_rows)
    total = 0
    for s in range(len(sets)):
        split[0] = all_rows
        for k in range(t - 1):
            column = sets[s, k]
            for p in range((1 << k) - 1, -1, -1):
                for w in range(words):
                    both = split[p, w]
                    on = both & packed[column, w]
                    split[2 * p + 1, w] = on
                    split[2 * p, w] = both ^ on
        column = sets[s, t - 1]
        half = 1 << (t - 1)
        here = 0
        for p in range(half >> 1 if complement else half):
            some_on, some_off = np.uint64(0), np.uint64(0)
            for w in range(words):
                on = split[p, w] & packed[column, w]
                some_on |= on
                some_off |= split[p, w] ^ on
                if complement:
                    on = split[half - 1 - p, w] & packed[column, w]
                    some_off |= on
                    some_on |= split[half - 1 - p, w] ^ on
            here += (some_on == 0) + (some_off == 0)
        if here:
            total += here
            for k in range(t):
                sets[s, k], sets[s // 2, k] = sets[s // 2, k], sets[s, k]
            if total > limit:
                break
    return total


@njit(cache=True)
def anneal(n, bits, constant, orbit, sets, steps, hot, cold, complement, seed):
    np.random.seed(seed)
    row_blocks, column_blocks, orbits = bits.shape
    rows = row_blocks * n + len(constant)
    packed = np.zeros((column_blocks * n, (rows + 63) // 64), np.uint64)
    all_rows = np.zeros((rows + 63) // 64, np.uint64)
    for i in range(rows):
        all_rows[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    split = np.zeros((1 << sets.shape[1], len(all_rows)), np.uint64)
    pack_columns(n, bits, constant, orbit, packed)
    current = missing(packed, sets, all_rows, 1 << 60, complement, split)
    best = current
    best_bits, best_constant = bits.copy(), constant.copy()
    old_bits, old_constant = bits.copy(), constant.copy()
    for step in range(steps):
        if best == 0:
            break
        temperature = hot * (cold / hot) ** (step / steps)
        old_bits[:] = bits
        old_constant[:] = constant
        c = np.random.randint(column_blocks)
        place = np.random.randint(row_blocks * orbits + len(constant))
        if place >= row_blocks * orbits:
            constant[place - row_blocks * orbits, c] ^= 1
        else:
            r = place // orbits
            bits[r, c, place % orbits] ^= 1
            if np.random.random() < 0.5:
                if np.random.random() < 0.3:
                    r = np.random.randint(row_blocks)
                bits[r, c, np.random.randint(orbits)] ^= 1
        pack_columns(n, bits, constant, orbit, packed)
        bar = np.int64(current - temperature * np.log(np.random.random() + 1e-12))
        now = missing(packed, sets, all_rows, bar, complement, split)
        if now > bar:
            bits[:] = old_bits
            constant[:] = old_constant
            continue
        current = now
        if current < best:
            best = current
            best_bits[:] = bits
            best_constant[:] = constant
    return best, best_bits, best_constant


def representatives(shape: Shape) -> np.ndarray:
    multipliers = powers(multiplier_of_order(shape.n, shape.order), shape.n)
    nothing = np.empty((0, shape.strength), np.int16)
    arguments = (shape.n, shape.column_blocks, shape.strength, multipliers)
    sets = np.empty((list_orbits(*arguments, nothing), shape.strength), np.int16)
    list_orbits(*arguments, sets)
    return sets


def search(shape: Shape, sets: np.ndarray, steps: int, hot: float, cold: float, seed: int) -> int:
    """One annealing run; prints what it found and returns how many patterns are missing."""
    started = time.perf_counter()
    random = np.random.default_rng(seed)
    multiplier = multiplier_of_order(shape.n, shape.order)
    orbit = orbit_numbers(shape.n, powers(multiplier, shape.n))
    bits = random.integers(0, 2, (shape.row_blocks, shape.column_blocks, orbit.max() + 1))
    constant = random.integers(0, 2, (shape.constant_rows, shape.column_blocks))
    shuffled = sets[random.permutation(len(sets))]
    left, bits, constant = anneal(
        shape.n, bits, constant, orbit, shuffled, steps, hot, cold, shape.complement, seed
    )
    print(
        f"# strength {shape.strength}: {shape.rows} x {shape.n * shape.column_blocks}, "
        f"n={shape.n} order={shape.order} {len(sets)} orbits, seed {seed}: {left} missing, "
        f"{time.perf_counter() - started:.1f} s",
        flush=True,
    )
    if left == 0:
        print(literal(shape, multiplier, bits, constant), flush=True)
    return int(left)


def literal(shape: Shape, multiplier: int, bits: np.ndarray, constant: np.ndarray) -> str:
    blocks = tuple(tuple("".join(map(str, starter)) for starter in row) for row in bits)
    text = f"BlockCirculant({shape.strength}, {shape.n}, {multiplier}, {blocks}"
    if shape.constant_rows:
        text += f", constant_rows={tuple(''.join(map(str, row)) for row in constant)}"
    return text + (", complement=True)" if shape.complement else ")")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("strength", "n", "row_blocks", "column_blocks"):
        parser.add_argument(name, type=int)
    parser.add_argument("--order", type=int, default=1, help="order of the multiplier group")
    parser.add_argument("--constant-rows", type=int, default=0)
    parser.add_argument("--complement", action="store_true")
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--hot", type=float, default=3.0)
    parser.add_argument("--cold", type=float, default=0.3)
    given = vars(parser.parse_args())
    schedule = {name: given.pop(name) for name in ("steps", "hot", "cold")}
    seeds = given.pop("seeds")
    shape = Shape(**given)
    sets = representatives(shape)
    for seed in range(seeds):
        if search(shape, sets, **schedule, seed=seed) == 0:
            return
    raise SystemExit(f"not found in {seeds} runs")


if __name__ == "__main__":
    main()
