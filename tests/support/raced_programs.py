"""Programs with known faults, as text."""

LOST_UPDATE = """
import threading

class Counter:
    def __init__(self):
        self.value = 0

    def add(self):
        value = self.value
        self.value = value + 1

def count_to_two():
    counter = Counter()
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2, counter.value
"""
KEPT_UPDATE = LOST_UPDATE.replace(
    "def add(self):", "def add(self, lock=threading.Lock()):"
).replace(
    "        value = self.value\n        self.value = value + 1",
    "        with lock:\n            value = self.value\n            self.value = value + 1",
)
SLOWER_UPDATE = LOST_UPDATE.replace("value = self.value\n", "value = int(self.value)\n")
"""Python switches threads when a call of a built-in function returns."""
DEADLOCK = """
import threading

left, right = threading.Lock(), threading.Lock()

def move(first, second):
    with first:
        with second:
            pass

def main():
    threads = [
        threading.Thread(target=move, args=(left, right)),
        threading.Thread(target=move, args=(right, left)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

if __name__ == "__main__":
    main()
"""
LOST_WAKE_UP = """
import threading

def hand_over():
    full = []
    condition = threading.Condition()

    def take():
        if not full:
            with condition:
                condition.wait()

    taker = threading.Thread(target=take)
    taker.start()
    full.append(1)
    with condition:
        condition.notify()
    taker.join()
"""
SUITE = """
import threading
import pytest

class Shop:
    def __init__(self, seats):
        self.seats = seats

    def sell(self):
        if self.seats > 0:
            self.seats -= 1

@pytest.fixture
def shop():
    return Shop(1)

def test_one_seller(shop):
    shop.sell()
    assert shop.seats == 0

def test_two_sellers(shop):
    sellers = [threading.Thread(target=shop.sell) for _ in range(2)]
    for seller in sellers:
        seller.start()
    for seller in sellers:
        seller.join()
    assert shop.seats >= 0
"""
