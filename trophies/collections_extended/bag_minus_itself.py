"""`bag -= itself` raises RuntimeError.

Release: collections-extended==2.0.2
Hunt: hunt.py::BagTest
Fault: -= b with itself
Oracle: check_itself
Known: not found in its tracker

A bag has the operators of a mutable set; `b -= b` leaves it empty, as `b -= b.copy()` does.
"""

from collections_extended import bag

values = bag([1, 2])
values -= values
assert not values
