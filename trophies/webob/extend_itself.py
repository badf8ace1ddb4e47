"""`MultiDict.extend` with itself fills the memory.

Release: WebOb==1.8.11
Hunt: hunt.py::MultiDictTest
Fault: [Tt]imeout|[Mm]emory|SIGKILL
Oracle: check_itself
Known: not found in its tracker

`MultiDict.extend` "adds items from a dict, iterable or another MultiDict": one with itself holds
each item twice.
"""

from webob.multidict import MultiDict

fields = MultiDict([("a", "1")])
fields.extend(fields)
assert list(fields.items()) == [("a", "1"), ("a", "1")]
