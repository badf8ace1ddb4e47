"""`popitem` of an empty MultiDict raises IndexError.

Release: WebOb==1.8.11
Hunt: hunt.py::ResponseHeadersTest
Fault: popitem: raises IndexError
Oracle: like = "dict"
Known: not found in its tracker

A MultiDict is a MutableMapping: "raise KeyError if D is empty". Code that catches KeyError, such
as `clear` of the mixin, does not end as it should.
"""

from contextlib import suppress

from webob.multidict import MultiDict

with suppress(KeyError):
    MultiDict().popitem()
