"""A text with U+0085 is written as it is, and read as a space.

Release: ruamel.yaml==0.19.1
Hunt: hunt.py::RoundTrip
Fault: another value came back
Oracle: round trip
Known: not found in what is stored of its tracker

What `dump` writes, `load` reads. U+0085 is a line break in YAML 1.1, so it has to be escaped in a
scalar.
"""

import io

from ruamel.yaml import YAML

written = io.StringIO()
YAML().dump(["a\x85b"], written)
assert YAML().load(written.getvalue()) == ["a\x85b"]
