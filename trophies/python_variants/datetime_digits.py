"""`time.fromisoformat` in Python accepts digits of other scripts.

Release: Python 3.13.0
Hunt: hunt.py::DatetimeTest
Fault: time
Oracle: the variant in Python
Known: in part, cpython issue 89157 (`date`; fixed in 2025)

"Return a time corresponding to a time_string in any valid ISO 8601 format", and ValueError
otherwise. PEP 399 asks both versions to behave alike.
"""

import sys

for name in ("datetime", "_pydatetime"):
    sys.modules.pop(name, None)
sys.modules["_datetime"] = None
from datetime import time  # noqa: E402

try:
    time.fromisoformat("١٢")
except ValueError:
    pass
else:
    raise AssertionError("accepted")
