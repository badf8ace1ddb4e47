r"""`from_json` cannot read what `to_json` wrote.

Release: depq==1.5.5
Hunt: hunt.py::DepqTest
Fault: from_json\(\) cannot read
Oracle: check_parse
Known: not looked for

`from_json` is there to read what `to_json` gives. It parses it as a text, and it is a dict.
"""

from depq import DEPQ

assert list(DEPQ.from_json(DEPQ([("a", 1)]).to_json())) == [("a", 1)]
