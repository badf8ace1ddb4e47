"""Hunt with ready models, and with what is written and read again."""

from configobj import ConfigObj, ConfigObjError

from swarmtest import Compared, Machine, action, text


class ConfigObjTest(Compared):
    tested = ConfigObj
    like = "dict"
    without = "update_pairs"


class KeyRoundTrip(Machine):
    @action(key=text("ab=#:,", 3, 1))
    def write(self, key):
        settings = ConfigObj({key: "1"})
        assert ConfigObj(settings.write()) == settings, "another value came back"


class ValueRoundTrip(Machine):
    @action(value=text("a\n \"',#", 4))
    def write(self, value):
        try:
            written = ConfigObj({"a": value}, interpolation=False).write()
        except ConfigObjError:
            return
        assert ConfigObj(written, interpolation=False) == {"a": value}, "another value came back"
