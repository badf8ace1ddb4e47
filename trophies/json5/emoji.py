"""A character beyond U+FFFF comes back as two surrogates.

Release: json5==0.17.3
Hunt: hunt.py::RoundTrip
Fault: another value came back
Oracle: round trip
Known: yes, pull request 110 of dpranke/pyjson5, June 2026

`dumps` writes it as JSON does, as a pair of escapes; RFC 8259: "the character is represented as a
12-character sequence, encoding the UTF-16 surrogate pair".
"""

import json5

assert json5.loads(json5.dumps("\U0001f600")) == "\U0001f600"
