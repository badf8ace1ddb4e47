"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from orderedmultidict import omdict

from swarmtest import Compared


class OmdictTest(Compared):
    tested = omdict
    like = "dict"
