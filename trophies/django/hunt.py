"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from django.utils.datastructures import MultiValueDict

from swarmtest import Compared


class MultiValueDictTest(Compared):
    tested = MultiValueDict
    like = "dict"
