"""`symmetric_difference_update` with a list that repeats a value loses it.

Release: psygnal==0.16.1
Hunt: hunt.py::EventedSetTest
Fault: after symmetric_difference_update
Oracle: like = "set"
Known: not found in its tracker

It is a set, and a set does not count how often a list repeats a value.
"""

from psygnal.containers import EventedSet

values = EventedSet([1])
values.symmetric_difference_update([2, 2])
assert set(values) == {1, 2}
