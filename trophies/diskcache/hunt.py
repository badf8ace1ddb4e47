"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from diskcache import Index

from swarmtest import Compared


class IndexTest(Compared):
    tested = Index
    like = "OrderedDict"
