"""`BoxList.extend` with the list itself does not end.

Release: python-box==7.4.1
Hunt: hunt.py::BoxListTest
Fault: [Tt]imeout|[Mm]emory|SIGKILL
Oracle: check_itself
Known: not found in its tracker

BoxList is a list, and `list.extend` takes the list itself: `[1].extend` of itself gives `[1, 1]`.
"""

from box import BoxList

values = BoxList([1])
values.extend(values)
assert values == [1, 1]
