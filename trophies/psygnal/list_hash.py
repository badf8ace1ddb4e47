"""Equal EventedLists have different hashes.

Release: psygnal==0.16.1
Hunt: hunt.py::EventedListTest
Fault: two equal objects have different hashes
Oracle: check_hash
Known: not found in its tracker

The Python reference of `__hash__`: "The only required property is that objects which compare
equal have the same hash value". Lists themselves have no hash.
"""

from psygnal.containers import EventedList

one, other = EventedList([1]), EventedList([1])
assert one != other or hash(one) == hash(other)
