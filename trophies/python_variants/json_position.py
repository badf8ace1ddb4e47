"""The version of `json` in Python names the wrong position of a control character.

Release: Python 3.13.0
Hunt: hunt.py::JsonTest
Fault: position
Oracle: the variant in Python
Known: yes, cpython issue 154936; fixed in July 2026

`JSONDecodeError.pos`: "The start index of doc where parsing failed." PEP 399 asks both versions
to behave alike.
"""

from json import JSONDecodeError
from json.decoder import c_scanstring, py_scanstring

positions = []
for scan in (c_scanstring, py_scanstring):
    try:
        scan('"\n', 1, True)
    except JSONDecodeError as error:
        positions.append(error.pos)
assert positions[0] == positions[1] == 1
