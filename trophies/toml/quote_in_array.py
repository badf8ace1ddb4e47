"""A quotation mark in an array is read as an empty text.

Release: toml==0.10.2
Hunt: hunt.py::RoundTrip
Fault: text in a list
Oracle: round trip
Known: in part, issues 153 (closed) and 170 (open) of uiri/toml (other texts, which raise)

TOML: any character may be used in a basic string if it is escaped. The writer escapes the
quotation mark; the reader loses it.
"""

import toml

values = {"a": ['"', "b"]}
assert toml.loads(toml.dumps(values)) == values
