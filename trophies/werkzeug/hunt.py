"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from werkzeug.datastructures import Headers, MultiDict

from swarmtest import Machine, action, sampled_from, with_checks


@with_checks("fields", lambda: MultiDict([("a", "1")]))
class MultiDictTest(Machine):
    def start(self):
        self.fields = MultiDict()

    @action(key=sampled_from(["a", "b"]), value=sampled_from(["1", "2"]))
    def add(self, key, value):
        self.fields.add(key, value)


@with_checks("headers", lambda: Headers([("a", "1")]))
class HeadersTest(Machine):
    def start(self):
        self.headers = Headers()

    @action(key=sampled_from(["a", "b"]), value=sampled_from(["1", "2"]))
    def add(self, key, value):
        self.headers.add(key, value)
