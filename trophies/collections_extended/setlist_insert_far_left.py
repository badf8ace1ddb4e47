"""`setlist.insert` far left of the start raises IndexError.

Release: collections-extended==2.0.2
Hunt: hunt.py::SetListTest
Fault: insert: raises IndexError
Oracle: like = "list"
Known: not found in its tracker

setlist is a MutableSequence; `insert` of the type clips the index, as `list.insert` does.
"""

from collections_extended import setlist

values = setlist([5, 4])
values.insert(-5, 1)
assert list(values) == [1, 5, 4]
