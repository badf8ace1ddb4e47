"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from webob.headers import ResponseHeaders
from webob.multidict import MultiDict

from swarmtest import Compared


class MultiDictTest(Compared):
    tested = MultiDict
    like = "dict"


class ResponseHeadersTest(Compared):
    tested = ResponseHeaders
    like = "dict"
    without = "itself"
