"""A cache that forgets what was used least recently, and a machine that tests it."""

from swarmtest import Machine, action, integers, invariant


class Cache:
    """The program under test: at most `capacity` entries."""

    capacity = 6

    def __init__(self):
        self.values = {}
        self.order = []  # keys, the least recently used first

    def put(self, key, value):
        if key in self.values:
            self.order.remove(key)
        elif len(self.values) >= self.capacity:
            del self.values[self.order.pop(0)]
        self.values[key] = value
        self.order.append(key)

    def get(self, key):
        if key not in self.values:
            return None
        self.order.remove(key)
        self.order.append(key)
        return self.values[key]

    def discard(self, key):
        self.values.pop(key, None)  # the bug: the key stays in the order


keys = integers(0, 9)


class CacheMachine(Machine):
    steps = 60

    def start(self):
        self.cache = Cache()
        self.latest = {}

    @action(key=keys, value=integers(0, 99))
    def put(self, key, value):
        self.cache.put(key, value)
        self.latest[key] = value

    @action(key=keys)
    def get(self, key):
        assert self.cache.get(key) in (None, self.latest.get(key))

    @action(key=keys)
    def discard(self, key):
        self.cache.discard(key)
        self.latest.pop(key, None)
        assert self.cache.get(key) is None

    @action
    def clear(self):
        self.cache = Cache()
        self.latest.clear()

    @invariant
    def holds_no_more_than_its_capacity(self):
        assert len(self.cache.values) <= self.cache.capacity
