"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from sortedcollections import ValueSortedDict

from swarmtest import Compared


class ValueSortedDictTest(Compared):
    tested = ValueSortedDict
    like = "dict"
