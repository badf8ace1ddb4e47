"""Hunt with ready models; run it with `swarmtest run hunt.py`."""

from collections_extended import bag, setlist

from swarmtest import Compared, Machine, action, integers, with_checks


class SetListTest(Compared):
    tested = setlist
    like = "list"
    raises = ValueError  # a value that is there already


@with_checks("bag", bag)
class BagTest(Machine):
    def start(self):
        self.bag = bag()

    @action(value=integers(0, 3))
    def add(self, value):
        self.bag.add(value)
