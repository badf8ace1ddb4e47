"""With `keys=True`, an entry with the key `py/id` is lost.

Release: jsonpickle==4.1.4
Hunt: hunt.py::RoundTrip
Fault: another value came back
Oracle: round trip
Known: in part, pull request 624 (without `keys=True`)

"keys: If set to True then jsonpickle will encode non-string dictionary keys instead of coercing
them into strings", and the maintainers say that it escapes and preserves reserved keys (pull
request 624). The entry is lost without an error.
"""

import jsonpickle

values = {"py/id": 1, "a": 2}
assert jsonpickle.decode(jsonpickle.encode(values, keys=True), keys=True) == values
