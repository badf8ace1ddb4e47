"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from orderly_set import OrderedSet, SortedSet

from swarmtest import Compared


class OrderedSetTest(Compared):
    tested = OrderedSet
    like = "set"


class SortedSetTest(Compared):
    tested = SortedSet
    like = "set"
