"""A value of several lines that begins with a line feed cannot be read back.

Release: configobj==5.0.9
Hunt: hunt.py::ValueRoundTrip
Fault: ParseError
Oracle: round trip
Known: not found in its tracker (pull request 140 is about other quotes)

Values with line feeds are "triple quoted" by the writer. A value that is only a line feed is
written as three quotes, a line feed and three quotes, which the reader refuses.
"""

from configobj import ConfigObj

settings = ConfigObj({"a": "\n"})
assert ConfigObj(settings.write()) == {"a": "\n"}
