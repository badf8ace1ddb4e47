"""A key with an equals sign is written without quotes, and read as another key.

Release: configobj==5.0.9
Hunt: hunt.py::KeyRoundTrip
Fault: another value came back
Oracle: round trip
Known: yes, issue 273 and pull request 274 of DiffSK/configobj, open

The format allows keys in quotes, so the writer could quote the key. The setting `a=b` comes back
as `a`.
"""

from configobj import ConfigObj

settings = ConfigObj({"a=b": "1"})
assert ConfigObj(settings.write()) == {"a=b": "1"}
