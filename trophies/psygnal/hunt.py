"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from psygnal.containers import EventedList, EventedSet

from swarmtest import Compared


class EventedSetTest(Compared):
    tested = EventedSet
    like = "set"


class EventedListTest(Compared):
    tested = EventedList
    like = "list"
    without = "itself"
