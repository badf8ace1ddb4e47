"""Hunt with what is written and read again; run it with `swarmtest run hunt.py`."""

import hjson

from swarmtest import Machine, action, text


class RoundTrip(Machine):
    @action(value=text("a\"'{}#:,\n ", 4))
    def write(self, value):
        assert hjson.loads(hjson.dumps(value)) == value, "another value came back"
