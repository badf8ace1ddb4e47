"""Comparing Headers with a number raises TypeError.

Release: httpx==0.28.1
Hunt: hunt.py::HeadersTest
Fault: comparing it with another object raises
Oracle: check_equality
Known: in part, issue 2439 of encode/httpx, open (another error of the same comparison)

`__eq__` catches ValueError and returns False; with a number the constructor raises TypeError.
"""

import httpx

assert (httpx.Headers() == 5) is False
