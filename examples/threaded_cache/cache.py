"""A cache that computes each value once, and two threads that ask for the same value."""

import threading


class Cache:
    """The program under test."""

    def __init__(self, compute):
        self.compute = compute
        self.values = {}
        self.lock = threading.Lock()

    def get(self, key):
        if key not in self.values:  # the bug: this is asked without the lock
            with self.lock:
                self.values[key] = self.compute(key)
        return self.values[key]


def two_readers():
    computed = []

    def compute(key):
        computed.append(key)
        return key * key

    cache = Cache(compute)
    readers = [threading.Thread(target=cache.get, args=(7,)) for _ in range(2)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert len(computed) == 1, "computed twice"
