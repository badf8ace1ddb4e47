"""Starter vectors of block-circulant covering arrays; none is taken from a published table."""

from swarmtest.strategies.covering.block_circulant import BlockCirculant

# Found by our own `tools/covering/search_starters.py`, whose output lines these are.
_FOUND_BY_ANNEALING = (
    # 12 rows, 11 columns
    BlockCirculant(3, 11, 3, (("001",),), constant_rows=("1",)),
    # 18 rows, 17 columns
    BlockCirculant(3, 17, 2, (("001",),), constant_rows=("1",)),
    # 21 rows, 25 columns
    BlockCirculant(
        3,
        5,
        4,
        (
            ("100", "101", "010", "110", "100"),
            ("110", "000", "101", "010", "001"),
            ("001", "110", "100", "100", "101"),
            ("011", "011", "011", "110", "101"),
        ),
        constant_rows=("00011",),
    ),
    # 26 rows, 52 columns
    BlockCirculant(3, 26, 3, (("1100110010", "0001011110"),)),
    # 43 rows, 172 columns
    BlockCirculant(
        3, 43, 6, (("010011101100100", "001110100110100", "010000111110001", "110110000110101"),)
    ),
    # 46 rows, 23 columns
    BlockCirculant(4, 23, 2, (("001",),), complement=True),
    # 134 rows, 201 columns
    BlockCirculant(
        4, 67, 9, (("0001011", "1100111", "1110001"), ("0101010", "1010010", "1100110"))
    ),
    # 346 rows, 173 columns
    BlockCirculant(5, 173, 6, (("11100",),), complement=True),
    # 368 rows, 23 columns
    BlockCirculant(
        6,
        23,
        1,
        (
            ("11100110010011101011110",),
            ("11001111010011110010000",),
            ("11110111000100010100101",),
            ("00000110101010010011101",),
            ("01001101001100101100000",),
            ("10010100001111010110010",),
            ("00001000111100000001100",),
            ("00010000000100100011101",),
        ),
        complement=True,
    ),
    # 516 rows, 43 columns
    BlockCirculant(
        6,
        43,
        4,
        (("0100110",), ("1010110",), ("1001101",), ("1100101",), ("1110101",), ("1010011",)),
        complement=True,
    ),
)

# Quadratic residues that need a constant row, or their own entry; checked by
# `tools/covering/check_residues.py`. The rest of that family is in `algebraic`.
_RESIDUES = (
    # 19 rows, 19 columns
    BlockCirculant(3, 19, 4, (("010",),)),
    # 24 rows, 11 columns
    BlockCirculant(4, 11, 3, (("010",),), constant_rows=("0",), complement=True),
    # 40 rows, 19 columns
    BlockCirculant(4, 19, 4, (("010",),), constant_rows=("0",), complement=True),
    # 136 rows, 67 columns
    BlockCirculant(5, 67, 4, (("010",),), constant_rows=("0",), complement=True),
    # 144 rows, 71 columns
    BlockCirculant(5, 71, 2, (("010",),), constant_rows=("0",), complement=True),
    # 160 rows, 79 columns
    BlockCirculant(5, 79, 2, (("010",),), constant_rows=("0",), complement=True),
    # 168 rows, 83 columns
    BlockCirculant(5, 83, 3, (("010",),), constant_rows=("0",), complement=True),
    # 720 rows, 359 columns
    BlockCirculant(6, 359, 2, (("010",),), constant_rows=("0",), complement=True),
)

STARTERS = _FOUND_BY_ANNEALING + _RESIDUES
