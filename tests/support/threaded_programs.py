"""Programs with known faults of concurrency, as text."""

LOST_UPDATE = """
    from threading import Thread

    total = 0

    def add():
        global total
        total += 1

    def test():
        global total
        total = 0
        threads = [Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert total == 2
"""

AB_BA = """
    import threading
    from threading import Lock

    a = Lock()
    b = threading.Lock()

    def a_then_b():
        with a:
            with b:
                pass

    def b_then_a():
        with b:
            with a:
                pass

    def test():
        threads = [threading.Thread(target=f) for f in (a_then_b, b_then_a)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""

MISSED_NOTIFY = """
    import threading

    class Box:
        def __init__(self):
            self.full = False
            self.changed = threading.Condition()

        def put(self):
            with self.changed:
                self.full = True
                self.changed.notify()

        def take(self):
            if not self.full:  # looked at without the lock
                with self.changed:
                    self.changed.wait()

    def test():
        box = Box()
        taker = threading.Thread(target=box.take)
        taker.start()
        box.put()
        taker.join()
"""

AIRLINES = """
    import threading

    class Flight:
        def __init__(self, seats):
            self.left = seats
            self.sold = 0
            self.lock = threading.Lock()

        def sell_with_lock(self):
            while True:
                with self.lock:
                    if self.left == 0:
                        return
                    self.left -= 1
                    self.sold += 1

        def sell_without(self):
            while self.left > 0:
                self.left -= 1
                self.sold += 1

    def test():
        flight = Flight(150)
        sellers = [flight.sell_with_lock, flight.sell_without, flight.sell_without]
        threads = [threading.Thread(target=seller) for seller in sellers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert flight.sold == 150
"""

CRAWLER = """
    import threading

    class Crawler:
        def __init__(self):
            self.queue = ["a", "b", "c"]
            self.connection = object()
            self.stopping = False
            self.lock = threading.Lock()

        def work(self):
            while not self.stopping:
                with self.lock:
                    if not self.queue:
                        return
                    self.queue.pop()
                if not self.stopping:
                    assert self.connection is not None

        def shut_down(self):
            self.stopping = True
            self.connection = None

    def test():
        crawler = Crawler()
        workers = [threading.Thread(target=crawler.work) for _ in range(2)]
        for worker in workers:
            worker.start()
        crawler.shut_down()
        for worker in workers:
            worker.join()
"""

FAULTY = {
    "lost update": LOST_UPDATE,
    "AB-BA": AB_BA,
    "missed notify": MISSED_NOTIFY,
    "airlines": AIRLINES,
    "crawler": CRAWLER,
}
