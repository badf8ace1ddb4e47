"""`MultiDict.update` with itself does not end.

Release: Werkzeug==3.1.9
Hunt: hunt.py::MultiDictTest
Fault: [Tt]imeout|[Mm]emory|SIGKILL
Oracle: check_itself
Known: not found in its tracker

`MultiDict.update` "extends rather than replaces existing lists": with itself it ends, as with a
copy.
"""

from werkzeug.datastructures import MultiDict

fields = MultiDict([("a", 1)])
fields.update(fields)
assert fields.getlist("a") == [1, 1]
