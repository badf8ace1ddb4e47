"""What `|=` puts into a section is not written.

Release: configobj==5.0.9
Hunt: hunt.py::ConfigObjTest
Fault: after ior
Oracle: like = "dict"
Known: not looked for

A section is a subclass of dict; `update` adds to it, and `d |= other` is `d.update(other)`. The
new entry is in the dict and not among the section's scalars, so iterating and writing leave it
out.
"""

from configobj import ConfigObj

settings = ConfigObj({"a": "1"})
settings |= {"b": "2"}
assert settings.write() == ["a = 1", "b = 2"]
