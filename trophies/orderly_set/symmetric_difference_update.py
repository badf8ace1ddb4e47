"""`symmetric_difference_update` with a repeated value makes a set unequal to itself.

Release: orderly-set==5.5.0
Hunt: hunt.py::OrderedSetTest
Fault: after symmetric_difference_update|after iand|not equal to itself
Oracle: like = "set", check_equality
Known: not found in its tracker (pull request 108 of rspeer/ordered-set is the same mistake)

`OrderedSet` is a MutableSet. One that had its only value taken out is empty, and equals itself.
"""

from orderly_set import OrderedSet

values = OrderedSet()
values.symmetric_difference_update([2, 2])
values -= {2}
assert values == values
