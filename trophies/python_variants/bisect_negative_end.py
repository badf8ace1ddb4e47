"""`bisect` in C takes -1 as the end for none given; the version in Python does not.

Release: Python 3.13.0
Hunt: hunt.py::BisectTest
Fault: another result
Oracle: the variant in Python
Known: yes, cpython issues 85009 (closed: will not be fixed) and 125889

PEP 399 asks both versions to behave alike. `hi` defaults to None; -1 is another end.
"""

import sys
from bisect import bisect_left as in_c

sys.modules.pop("bisect")
sys.modules["_bisect"] = None
from bisect import bisect_left as in_python  # noqa: E402

assert in_c([1, 2, 3], 5, 0, -1) == in_python([1, 2, 3], 5, 0, -1)
