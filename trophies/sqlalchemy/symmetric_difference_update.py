"""`OrderedSet.symmetric_difference_update` makes a set hold a value twice.

Release: sqlalchemy==2.1.8
Hunt: hunt.py::OrderedSetTest
Fault: after symmetric_difference_update
Oracle: like = "set"
Known: not found in its tracker

An OrderedSet holds each value once; `symmetric_difference_update` with a list that repeats one
makes it hold it twice. Then its length and its iteration differ.
"""

from sqlalchemy.util import OrderedSet

values = OrderedSet()
values.symmetric_difference_update([0, 0])
assert list(values) == [0]
