"""`configparser` writes a key with an equals sign so that another key is read.

Release: Python 3.13.0
Hunt: hunt.py::ConfigParserTest
Fault: keys
Oracle: round trip
Known: yes, cpython issue 128843; 3.14 refuses such keys

`write`: "This representation can be parsed by a future read() call."
"""

import configparser
import io

config, written = configparser.RawConfigParser(), io.StringIO()
config["a"] = {"k=x": "v"}
config.write(written)
again = configparser.RawConfigParser()
again.read_string(written.getvalue())
assert again.options("a") == ["k=x"]
