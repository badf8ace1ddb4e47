"""`plistlib` writes -0.0 as 0.0 if both are in one binary file.

Release: Python 3.13.0
Hunt: hunt.py::PlistTest
Fault: binary
Oracle: round trip
Known: not found in its tracker

The writer stores equal values once, and 0.0 equals -0.0. It tells 1, 1.0 and True apart for the
same reason.
"""

import plistlib

written = plistlib.dumps([0.0, -0.0], fmt=plistlib.FMT_BINARY)
assert str(plistlib.loads(written)) == "[0.0, -0.0]"
