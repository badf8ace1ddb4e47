"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from box import BoxList

from swarmtest import Compared


class BoxListTest(Compared):
    tested = BoxList
    like = "list"
