"""`|=` adds a second value, and the old one stays in front of it.

Release: orderedmultidict==1.0.2
Hunt: hunt.py::OmdictTest
Fault: after ior
Oracle: like = "dict"
Known: not found in its tracker

"omdict retains method parity with dict, and a dict object can be replaced with an omdict object";
`update` replaces the value. `d |= other` of a dict is `d.update(other)`: the other's values take
priority.
"""

from orderedmultidict import omdict

fields = omdict({"a": 1})
fields |= {"a": 2}
assert fields["a"] == 2
