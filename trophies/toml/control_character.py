"""`dumps` of a text with U+0085 raises IndexError.

Release: toml==0.10.2
Hunt: hunt.py::RoundTrip
Fault: IndexError
Oracle: round trip
Known: not found in its tracker

TOML allows every Unicode character that is not a control character of ASCII; U+0085 can be
written as it is, or escaped.
"""

import toml

assert toml.loads(toml.dumps({"a": "\x85"})) == {"a": "\x85"}
