"""A text that is one quotation mark is written so that it cannot be read.

Release: hjson==3.1.0
Hunt: hunt.py::RoundTrip
Fault: HjsonDecodeError
Oracle: round trip
Known: not found in its tracker

`loads` reads what `dumps` writes; inside an object the same text is written with quotes.
"""

import hjson

assert hjson.loads(hjson.dumps('"')) == '"'
