"""`netrc.__repr__` does not quote a password with a space.

Release: Python 3.13.0
Hunt: hunt.py::NetrcTest
Fault: NetrcParseError|hosts
Oracle: round trip
Known: not found in its tracker (issue 99080 is about reading backslashes)

`__repr__`: "Dump the class data as a string in the format of a netrc file. (This discards
comments and may reorder the entries.)"
"""

import netrc
import os
import tempfile

login = netrc.netrc(os.devnull)
login.hosts["example.org"] = ("me", "", "two words")
with tempfile.NamedTemporaryFile("w") as file:
    file.write(repr(login))
    file.flush()
    assert netrc.netrc(file.name).hosts == login.hosts
