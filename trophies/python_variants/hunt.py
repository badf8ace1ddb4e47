"""Hunt with the variants in C and in Python; `swarmtest run hunt.py`."""

import _pyio
import importlib
import io
import sys
from functools import partial
from json.decoder import c_scanstring, py_scanstring

from swarmtest import Machine, action, integers, lists, sampled_from, text


def variants(name, extension):
    """Return a module with its extension in C, and without it."""
    in_c = importlib.import_module(name)
    hidden = {each: sys.modules.pop(each, None) for each in (name, f"_py{name}")}
    sys.modules[extension] = None
    in_python = importlib.import_module(name)
    del sys.modules[extension]
    sys.modules.update({each: module for each, module in hidden.items() if module})
    return in_c, in_python


def outcome(call):
    """Return what a call returns, or the class of what it raises."""
    try:
        return call()
    except (ValueError, TypeError, OverflowError) as error:
        return type(error)


def fromisoformat(module, kind, text):
    """Return what a text means to a class of a module."""
    return str(getattr(module, kind).fromisoformat(text))


BISECT = variants("bisect", "_bisect")
DATETIME = variants("datetime", "_datetime")


class BisectTest(Machine):
    @action(
        values=lists(integers(0, 5), 5), x=integers(0, 5), low=integers(-2, 5), high=integers(-2, 5)
    )
    def bisect(self, values, x, low, high):
        values.sort()
        high = min(high, len(values))
        found = [outcome(lambda m=m: m.bisect_left(values, x, low, high)) for m in BISECT]
        assert found[0] == found[1], "another result"


class JsonTest(Machine):
    @action(source=text('a"\\u0\n\x1f', 6))
    def scan(self, source):
        found = []
        for scan in (c_scanstring, py_scanstring):
            try:
                found.append(scan(f'"{source}', 1, True))
            except ValueError as error:
                found.append(error.pos)
        assert found[0] == found[1], "another position or result"


class DatetimeTest(Machine):
    steps = (1, 6)

    def start(self):
        self.text = ""

    @action(part=sampled_from(["2020", "-", "01", "T", ":", "12", ".", "5", "Z", "1", "١٢", "W"]))
    def fromisoformat(self, part):
        self.text += part
        for kind in ("date", "time", "datetime"):
            found = [outcome(partial(fromisoformat, m, kind, self.text)) for m in DATETIME]
            assert found[0] == found[1], f"{kind} is another one"

    @action(template=text("ab\0 -", 4))
    def strftime(self, template):
        assert DATETIME[0].date(2020, 1, 1).strftime(template) == template, "strftime"


class StringIOTest(Machine):
    @action(first=text("a\n\r", 4), then=text("a\n\r", 3), newline=sampled_from([None, "", "\n"]))
    def write(self, first, then, newline):
        found = []
        for module in (io, _pyio):
            file = module.StringIO(first, newline=newline)
            file.seek(0, 2)
            file.write(then)
            found.append(file.getvalue())
        assert found[0] == found[1], "another text"


class ReadlinesTest(Machine):
    @action(data=text("ab\n", 9), hint=integers(1, 9))
    def readlines(self, data, hint):
        found = [io.BytesIO(data.encode()), io.BufferedReader(io.BytesIO(data.encode()))]
        lines = [file.readlines(hint) for file in found]
        assert lines[0] == lines[1], "other lines"
