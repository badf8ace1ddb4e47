r"""`_pyio.StringIO` loses a line feed that is written after a carriage return was translated.

Release: Python 3.13.0
Hunt: hunt.py::StringIOTest
Fault: another text
Oracle: the variant in Python
Known: not found in its tracker

`newline=None`: "newlines are written as \\n on all platforms"; the version in C keeps both. PEP
399 asks both versions to behave alike.
"""

import _pyio

file = _pyio.StringIO("\r", newline=None)
file.seek(0, 2)
file.write("\n")
assert file.getvalue() == "\n\n"
