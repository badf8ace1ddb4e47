"""Comparing an Index with an object that has no length raises TypeError.

Release: diskcache==5.6.3
Hunt: hunt.py::IndexTest
Fault: comparing it with another object raises
Oracle: check_equality
Known: not found in its tracker

`==` with an object of another kind is False for every type of Python.
"""

from diskcache import Index

assert (Index() == 5) is False
