"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from pytrie import StringTrie

from swarmtest import Compared


class TrieTest(Compared):
    tested = StringTrie
    like = "dict"
