"""`setlist.extend` loses the values of an iterator.

Release: collections-extended==2.0.2
Hunt: hunt.py::SetListTest
Fault: extend_iterator
Oracle: like = "list"
Known: not found in its tracker

`setlist.extend` takes an iterable: "extend sequence by appending elements from the iterable". An
iterator's values are lost.
"""

from collections_extended import setlist

values = setlist()
values.extend(iter([6]))
assert list(values) == [6]
