"""`symmetric_difference_update` makes a set hold a value twice.

Release: ordered-set==4.1.0
Hunt: hunt.py::OrderedSetTest
Fault: after symmetric_difference_update
Oracle: like = "set"
Known: yes, pull request 108 of rspeer/ordered-set, open

An OrderedSet holds each value once; `symmetric_difference_update` with a list that repeats one
makes it hold it twice.
"""

from ordered_set import OrderedSet

values = OrderedSet()
values.symmetric_difference_update([-1, 0, 0])
assert list(values) == [-1, 0]
