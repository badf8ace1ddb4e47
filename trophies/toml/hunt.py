"""Hunt with what is written and read again; run it with `swarmtest run hunt.py`."""

import toml

from swarmtest import Machine, action, integers, lists, sampled_from, text

TEXT = text("a=#'\"\\\n\x85é", 3)


class RoundTrip(Machine):
    @action(value=TEXT)
    def write_text(self, value):
        assert toml.loads(toml.dumps({"a": value})) == {"a": value}, "text"

    @action(values=lists(TEXT, 3))
    def write_list(self, values):
        assert toml.loads(toml.dumps({"a": values})) == {"a": values}, "text in a list"

    @action(key=sampled_from("ab"), value=integers(0, 3))
    def write_nested(self, key, value):
        values = {"a": [[{key: value}]]}
        assert toml.loads(toml.dumps(values)) == values, "dict in a list"
