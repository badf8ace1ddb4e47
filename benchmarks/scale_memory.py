"""The most memory that arrays and objects took while the roles of all targets were worked out.

    python benchmarks/scale_memory.py TESTS FEATURES TARGETS HITS

Prints bytes, as `tracemalloc` sees them, of a study of a made-up campaign in a store on disk.
"""

from __future__ import annotations

import sys
import tempfile
import tracemalloc
from pathlib import Path

from scale_data import Made

from swarmtest import open_store
from swarmtest.roles.study import Study


def main() -> None:
    tests, features, targets, hits = map(int, sys.argv[1:5])
    with tempfile.TemporaryDirectory() as place, open_store(str(Path(place) / "made.db")) as store:
        campaign = Made(tests, features, targets, hits).record_into(store)
        tracemalloc.start()
        Study(store, [campaign]).table("line").rows.discoveries(0.05)
        print(tracemalloc.get_traced_memory()[1])


if __name__ == "__main__":
    main()
