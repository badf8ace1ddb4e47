"""`string.Formatter` does not number a field that begins with an attribute.

Release: Python 3.13.0
Hunt: hunt.py::FormatterTest
Fault: another result
Oracle: str.format
Known: yes, cpython issue 129273; fixed in 3.14

"using the same implementation as the built-in format() method".
"""

import string

assert string.Formatter().format("{.real}", 1) == f"{(1).real}"
