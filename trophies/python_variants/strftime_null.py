"""`strftime` ends at a null character.

Release: Python 3.13.0
Hunt: hunt.py::DatetimeTest
Fault: strftime
Oracle: the text itself
Known: yes, cpython issue 124531; fixed in 3.13.1

Characters of the format that are no directive are copied. The rest of the format is lost without
an error.
"""

from datetime import datetime

assert datetime(2020, 1, 1).strftime("a\0b") == "a\0b"
