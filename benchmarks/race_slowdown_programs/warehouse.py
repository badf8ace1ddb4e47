"""Small objects with small methods: nearly every operation touches something that may be shared."""

import threading


class Shelf:
    def __init__(self, name, stock):
        self.name = name
        self.stock = stock
        self.lock = threading.Lock()
        self.taken = 0

    def take(self, amount):
        with self.lock:
            if self.stock < amount:
                return False
            self.stock -= amount
            self.taken += amount
            return True

    def put(self, amount):
        with self.lock:
            self.stock += amount


class Order:
    def __init__(self, number, wanted):
        self.number = number
        self.wanted = wanted
        self.state = "new"
        self.missing = []

    def price(self):
        total = 0
        for name, amount in self.wanted.items():
            total += len(name) * amount
        return total


class Warehouse:
    def __init__(self, names, stock):
        self.shelves = {name: Shelf(name, stock) for name in names}
        self.lock = threading.Lock()
        self.income = 0
        self.refused = 0

    def serve(self, order):
        done = []
        for name, amount in order.wanted.items():
            shelf = self.shelves[name]
            if shelf.take(amount):
                done.append((shelf, amount))
            else:
                order.missing.append(name)
        if order.missing:
            for shelf, amount in done:
                shelf.put(amount)
            order.state = "refused"
            with self.lock:
                self.refused += 1
        else:
            order.state = "sent"
            with self.lock:
                self.income += order.price()


def sell(warehouse, first, count):
    names = sorted(warehouse.shelves)
    for number in range(first, first + count):
        wanted = {names[(number + i * 3) % len(names)]: 1 + (number + i) % 4 for i in range(4)}
        warehouse.serve(Order(number, wanted))


def main(size):
    warehouse = Warehouse([f"shelf {i}" for i in range(20)], 300 * size)
    sellers = [
        threading.Thread(target=sell, args=(warehouse, i * 10_000, 400 * size)) for i in range(3)
    ]
    for seller in sellers:
        seller.start()
    for seller in sellers:
        seller.join()
    assert warehouse.income > 0
