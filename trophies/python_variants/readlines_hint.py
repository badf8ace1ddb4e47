"""`BytesIO.readlines` stops at the hint, and other files after it.

Release: Python 3.13.0
Hunt: hunt.py::ReadlinesTest
Fault: other lines
Oracle: two classes of io
Known: not found in its tracker

"no more lines will be read if the total size (in bytes/characters) of all lines so far exceeds
hint": three bytes do not exceed three.
"""

import io

assert io.BytesIO(b"ab\ncd\n").readlines(3) == [b"ab\n", b"cd\n"]
