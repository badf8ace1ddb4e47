"""Starter vectors of block-circulant covering arrays, as found by annealing.

All of them were found by our own `benchmarks/search_starters.py`, which prints lines in this form,
and checked in full by `swarmtest.strategies.covering.check`; none is taken from a published table.
"""

from swarmtest.strategies.covering.block_circulant import BlockCirculant

STARTERS = (
    # 12 rows, 11 columns
    BlockCirculant(
        strength=3,
        n=11,
        multiplier=3,
        blocks=(("110",),),
        constant_rows=("0",),
    ),
    # 18 rows, 17 columns
    BlockCirculant(
        strength=3,
        n=17,
        multiplier=2,
        blocks=(("110",),),
        constant_rows=("0",),
    ),
    # 19 rows, 19 columns
    BlockCirculant(
        strength=3,
        n=19,
        multiplier=4,
        blocks=(("010",),),
    ),
    # 21 rows, 25 columns
    BlockCirculant(
        strength=3,
        n=5,
        multiplier=4,
        blocks=(
            ("101", "100", "100", "110", "110"),
            ("001", "010", "101", "001", "000"),
            ("101", "110", "011", "100", "011"),
            ("100", "110", "010", "011", "101"),
        ),
        constant_rows=("11010",),
    ),
    # 26 rows, 52 columns
    BlockCirculant(
        strength=3,
        n=26,
        multiplier=3,
        blocks=(("1110100001", "0011001101"),),
    ),
    # 43 rows, 172 columns
    BlockCirculant(
        strength=3,
        n=43,
        multiplier=6,
        blocks=(("010000101011011", "110100011001110", "110001111010100", "011000010110011"),),
    ),
    # 24 rows, 11 columns
    BlockCirculant(
        strength=4,
        n=11,
        multiplier=3,
        blocks=(("010",),),
        constant_rows=("0",),
        complement=True,
    ),
    # 40 rows, 19 columns
    BlockCirculant(
        strength=4,
        n=19,
        multiplier=4,
        blocks=(("010",),),
        constant_rows=("0",),
        complement=True,
    ),
    # 46 rows, 23 columns
    BlockCirculant(
        strength=4,
        n=23,
        multiplier=2,
        blocks=(
            ("101",),
            ("010",),
        ),
    ),
    # 134 rows, 201 columns
    BlockCirculant(
        strength=4,
        n=67,
        multiplier=9,
        blocks=(
            ("0100101", "1101000", "0100110"),
            ("0110001", "1110110", "1011100"),
        ),
    ),
    # 136 rows, 67 columns
    BlockCirculant(
        strength=5,
        n=67,
        multiplier=4,
        blocks=(("010",),),
        constant_rows=("0",),
        complement=True,
    ),
    # 144 rows, 71 columns
    BlockCirculant(
        strength=5,
        n=71,
        multiplier=2,
        blocks=(("010",),),
        constant_rows=("0",),
        complement=True,
    ),
    # 160 rows, 79 columns
    BlockCirculant(
        strength=5,
        n=79,
        multiplier=2,
        blocks=(("010",),),
        constant_rows=("0",),
        complement=True,
    ),
    # 168 rows, 83 columns
    BlockCirculant(
        strength=5,
        n=83,
        multiplier=3,
        blocks=(("010",),),
        constant_rows=("0",),
        complement=True,
    ),
    # 346 rows, 173 columns
    BlockCirculant(
        strength=5,
        n=173,
        multiplier=6,
        blocks=(
            ("01001",),
            ("10011",),
        ),
    ),
    # 720 rows, 359 columns
    BlockCirculant(
        strength=6,
        n=359,
        multiplier=2,
        blocks=(("010",),),
        constant_rows=("0",),
        complement=True,
    ),
)
