"""Hunt with what is written and read again; run it with `swarmtest run hunt.py`."""

import json5

from swarmtest import Machine, action, text


class RoundTrip(Machine):
    @action(value=text("a\"'\\\n\u2028é\U0001f600", 4))
    def write(self, value):
        assert json5.loads(json5.dumps(value)) == value, "another value came back"
