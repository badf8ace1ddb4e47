"""Coverage of C and other native programs: a fast path of our own, gcov, or what a program writes.

`Program` runs a command on one input after another; `swarmtest cc` builds for the fast path.
"""

from swarmtest.instrument.native.program import Program
from swarmtest.instrument.native.run import Run

__all__ = ["Program", "Run"]
