"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from sqlalchemy.util import OrderedSet

from swarmtest import Compared


class OrderedSetTest(Compared):
    tested = OrderedSet
    like = "set"
