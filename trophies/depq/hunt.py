"""Hunt with checks that any class can have; run it with `swarmtest run hunt.py`."""

from depq import DEPQ

from swarmtest import Machine, action, integers, with_checks


@with_checks("queue", DEPQ)
class DepqTest(Machine):
    def start(self):
        self.queue = DEPQ()

    @action(item=integers(0, 9), priority=integers(0, 9))
    def insert(self, item, priority):
        self.queue.insert(item, priority)
