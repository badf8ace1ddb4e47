"""cachetools, changelog of 4.2.0: "Improve behavior of decorators in case of race conditions"."""

import threading

from cachetools import cached


def program():
    @cached({}, lock=threading.Lock())
    def connection(name):
        return [name]

    got = []
    threads = [threading.Thread(target=lambda: got.append(connection("a"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got[0] is got[1], "two connections of one name"
