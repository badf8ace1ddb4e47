"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

import httpx

from swarmtest import Compared


class HeadersTest(Compared):
    tested = httpx.Headers
    like = "dict"
