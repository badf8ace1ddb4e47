"""Whether a file, or what comes in, is interesting: ``ask.py ROW SEED CALLS FILE|-``, by exit."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from inputs import ROWS, SLOW_LIMIT

row, seed, calls, file = sys.argv[1:]
if Path(calls).exists() and Path(calls).stat().st_size > SLOW_LIMIT * len("call\n"):
    sys.exit(1)
with open(calls, "a") as log:
    log.write("call\n")
content = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
given = ROWS[row](int(seed))
by_line = given.parts[0].endswith(b"\n")
kept = content.splitlines(keepends=True) if by_line else [bytes([byte]) for byte in content]
known = set(given.parts)
# What the reducer wrote itself is no part of the original; only a compiler can judge that.
mine = "C program" in row or all(part in known for part in kept)
sys.exit(not (mine and given.holds(kept)))
