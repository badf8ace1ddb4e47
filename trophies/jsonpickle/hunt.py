"""Hunt with what is written and read again; run it with `swarmtest run hunt.py`."""

import jsonpickle

from swarmtest import Machine, action, sampled_from

KEYS = sampled_from(["a", "b", 1, 1.5, None, (1, 2), "py/id", "py/object", "json://1"])
VALUES = sampled_from([1, "a", None, (1, 2), b"\xff", 1.5, frozenset([1]), range(3), complex(1, 2)])


class RoundTrip(Machine):
    def start(self):
        self.values = {}

    @action(key=KEYS, value=VALUES)
    def put(self, key, value):
        self.values[key] = value
        written = jsonpickle.encode(self.values, keys=True)
        assert jsonpickle.decode(written, keys=True) == self.values, "another value came back"
