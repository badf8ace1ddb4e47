"""A crawler over pages in memory: workers share what is still to visit and what was found."""

import hashlib
import threading
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit


def page(number, pages):
    links = "".join(
        f'<li class="item"><a href="/page/{(number * step + 1) % pages}?from={number}">Page '
        f"{step}</a> &amp; more</li>"
        for step in range(2, 8)
    )
    return f"<html><head><title>Page {number}</title></head><body><ul>{links}</ul></body></html>"


class Links(HTMLParser):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.found = []
        self.title = ""
        self.in_title = False

    def handle_starttag(self, tag, attributes):
        self.in_title = tag == "title"
        if tag == "a":
            for name, value in attributes:
                if name == "href":
                    self.found.append(urlsplit(urljoin(self.base, value)).path)

    def handle_data(self, data):
        if self.in_title:
            self.title += data


class Crawler:
    def __init__(self, pages):
        self.pages = pages
        self.changed = threading.Condition()
        self.waiting = ["/page/0"]
        self.seen = {"/page/0"}
        self.busy = 0
        self.digests = {}

    def next(self):
        with self.changed:
            while not self.waiting:
                if not self.busy:
                    return None
                self.changed.wait()
            self.busy += 1
            return self.waiting.pop()

    def visit(self, path):
        text = page(int(path.rsplit("/", 1)[1]), self.pages)
        links = Links(f"http://example.test{path}")
        links.feed(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self.changed:
            self.digests[path] = links.title, digest
            for found in links.found:
                if found not in self.seen:
                    self.seen.add(found)
                    self.waiting.append(found)
            self.busy -= 1
            self.changed.notify_all()

    def work(self):
        while (path := self.next()) is not None:
            self.visit(path)


def main(size):
    crawler = Crawler(50 * size)
    workers = [threading.Thread(target=crawler.work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(crawler.digests) == len(crawler.seen)
