"""A dict in a list in a list is written as the list of its keys.

Release: toml==0.10.2
Hunt: hunt.py::RoundTrip
Fault: dict in a list
Oracle: round trip
Known: yes, issues 247 and 281 of uiri/toml, open

TOML has inline tables for it. The values of the dict are lost without an error.
"""

import toml

values = {"a": [[{"b": 1}]]}
assert toml.loads(toml.dumps(values)) == values
