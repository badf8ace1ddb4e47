"""Workers take lines of a log from a queue, parse them, and count in shared tables."""

import queue
import re
import threading

_LINE = re.compile(r'(\S+) \[(\d+)\] "(\w+) ([^"]*)" (\d+) (\d+)')
_PATHS = ("/", "/shop", "/shop/cart?item=17&from=mail", "/static/style.css", "/login?next=%2Fshop")


def lines(count):
    for number in range(count):
        host = f"10.0.{number % 7}.{number % 31}"
        path = _PATHS[number * 7 % len(_PATHS)]
        status = 500 if number % 97 == 0 else 200
        yield f'{host} [{1_700_000_000 + number}] "GET {path}" {status} {number * 37 % 9001}'


class Report:
    def __init__(self):
        self.lock = threading.Lock()
        self.hosts = {}
        self.pages = {}
        self.errors = 0
        self.size = 0

    def add(self, batch):
        hosts, pages, errors, size = {}, {}, 0, 0
        for line in batch:
            found = _LINE.match(line)
            if found is None:
                continue
            host, _, _, path, status, length = found.groups()
            page, _, query = path.partition("?")
            fields = dict(part.split("=", 1) for part in query.split("&") if part)
            key = (page, fields.get("item", ""))
            hosts[host] = hosts.get(host, 0) + 1
            pages[key] = pages.get(key, 0) + 1
            size += int(length)
            if status.startswith("5"):
                errors += 1
        with self.lock:
            for host, count in hosts.items():
                self.hosts[host] = self.hosts.get(host, 0) + count
            for key, count in pages.items():
                self.pages[key] = self.pages.get(key, 0) + count
            self.errors += errors
            self.size += size


def work(batches, report):
    while True:
        batch = batches.get()
        if batch is None:
            return
        report.add(batch)


def main(size):
    count = 2_000 * size
    report = Report()
    batches = queue.Queue(maxsize=8)
    workers = [threading.Thread(target=work, args=(batches, report)) for _ in range(3)]
    for worker in workers:
        worker.start()
    batch = []
    for line in lines(count):
        batch.append(line)
        if len(batch) == 50:
            batches.put(batch)
            batch = []
    batches.put(batch)
    for _ in workers:
        batches.put(None)
    for worker in workers:
        worker.join()
    assert sum(report.hosts.values()) == count
