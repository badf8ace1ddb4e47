"""A duration of a minute and some microseconds is written with an exponent, which cannot be read.

Release: durationpy==0.11
Hunt: hunt.py::RoundTrip
Fault: DurationError
Oracle: round trip
Known: in part, pull requests 15 (fixed below a second) and 22 (open) of icholy/durationpy

"Converts between datetime.timedelta and Go's Duration strings"; Go writes no exponents.
"""

from datetime import timedelta

import durationpy

duration = timedelta(minutes=7, microseconds=93)
assert durationpy.from_str(durationpy.to_str(duration)) == duration
