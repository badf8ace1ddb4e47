"""`add` of a negative number is a segmentation fault.

Release: intbitset==4.1.2
Hunt: hunt.py::IntBitSetTest
Fault: SIGSEGV
Oracle: like = "set"
Known: not found in its tracker

A call in Python never ends in a segmentation fault, whatever its argument. `add` of a negative
number does.
"""

from contextlib import suppress

from intbitset import intbitset

with suppress(ValueError, OverflowError):
    intbitset().add(-1)
