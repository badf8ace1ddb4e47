"""`configparser` loses a line of a value that begins with a number sign.

Release: Python 3.13.0
Hunt: hunt.py::ConfigParserTest
Fault: values
Oracle: round trip
Known: in part, cpython issue 130927, open (about reading)

`write`: "This representation can be parsed by a future read() call." The line is read as a
comment.
"""

import configparser
import io

config, written = configparser.RawConfigParser(), io.StringIO()
config["a"] = {"k": "x\n#y"}
config.write(written)
again = configparser.RawConfigParser()
again.read_string(written.getvalue())
assert again["a"]["k"] == "x\n#y"
