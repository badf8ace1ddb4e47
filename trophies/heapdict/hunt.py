"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from heapdict import heapdict

from swarmtest import Compared


class HeapDictTest(Compared):
    tested = heapdict
    like = "dict"
