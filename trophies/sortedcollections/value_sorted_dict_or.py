"""`ValueSortedDict` merged with a dict by the operator raises KeyError.

Release: sortedcollections==2.1.0
Hunt: hunt.py::ValueSortedDictTest
Fault: merged: raises KeyError
Oracle: like = "dict"
Known: not found in its tracker

A ValueSortedDict is a dict, and `d | other` merges two dicts. It raises KeyError.
"""

from sortedcollections import ValueSortedDict

assert dict(ValueSortedDict({1: 2}) | {3: 4}) == {1: 2, 3: 4}
