"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from intbitset import intbitset

from swarmtest import Compared


class IntBitSetTest(Compared):
    tested = intbitset
    like = "set"
