"""`Headers.extend` with itself does not end.

Release: Werkzeug==3.1.9
Hunt: hunt.py::HeadersTest
Fault: [Tt]imeout|[Mm]emory|SIGKILL
Oracle: check_itself
Known: not found in its tracker (aio-libs/multidict issue 1398 is the same mistake)

`Headers.extend` "extends headers in this object with items from another object": with itself it
ends.
"""

from werkzeug.datastructures import Headers

headers = Headers([("a", "1")])
headers.extend(headers)
assert headers.getlist("a") == ["1", "1"]
