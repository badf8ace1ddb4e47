"""`plistlib` writes a carriage return and a line feed as a line feed alone.

Release: Python 3.13.0
Hunt: hunt.py::PlistTest
Fault: xml
Oracle: round trip
Known: yes, cpython issue 139423, pull request 148305 open

XML has `&#13;` for it, and the binary format keeps it.
"""

import plistlib

assert plistlib.loads(plistlib.dumps("a\r\nb")) == "a\r\nb"
