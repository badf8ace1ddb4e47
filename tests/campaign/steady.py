"""A well-behaved program with two bugs.

Tests take as many milliseconds as NAP says, until the file that HURRY names is there.
"""

from __future__ import annotations

import os
import time

from swarmtest import Choice, Machine, Pool, action, consumes, integers, invariant

NAP = float(os.environ.get("NAP", "0")) / 1000
HURRY = os.environ.get("HURRY", "")
LOG = os.environ.get("LOG")


class Steady(Machine):
    steps = (5, 30)
    files = Pool()
    dimensions = [Choice("mode", ("fast", "safe"))]

    def start(self):
        self.numbers = []
        self.opened = 0
        if LOG:
            with open(LOG, "a") as log:
                log.write("started\n")
        if NAP and not os.path.exists(HURRY):
            time.sleep(NAP)

    @action(value=integers(0, 9))
    def push(self, value):
        self.numbers.append(value)
        if len(self.numbers) > 12:
            self.event("many numbers")

    @action(when=lambda self: self.numbers)
    def pop(self):
        self.event(f"popped {self.numbers.pop() // 4}")

    @action(into=files)
    def open(self):
        self.opened += 1
        return f"file {self.opened}"

    @action(file=consumes(files))
    def close(self, file):
        self.opened -= 1
        if self.settings["mode"] == "fast" and len(self.numbers) == 3:
            raise KeyError(file)

    @invariant
    def few_files(self):
        assert self.opened < 9


class Hangs(Machine):
    """Every test hangs."""

    def start(self):
        if LOG:
            with open(LOG, "a") as log:
                log.write("started\n")

    @action
    def wait(self):
        time.sleep(1000)

    @action
    def wait_more(self):
        time.sleep(1000)


class CrashesThenHangs(Machine):
    """The first test crashes; when it is run again, to find out its steps, it hangs."""

    def start(self):
        assert LOG
        with open(LOG, "a") as log:
            log.write("started\n")
            self.is_first = log.tell() == len("started\n")

    @action
    def wait(self):
        if self.is_first:
            os.abort()
        time.sleep(1000)

    @action
    def wait_more(self):
        self.wait()


class Sleeps(Machine):
    """Every test takes a quarter of a second."""

    steps = 1

    def start(self):
        if LOG:
            with open(LOG, "a") as log:
                log.write("started\n")

    @action
    def nap(self):
        time.sleep(0.25)

    @action
    def doze(self):
        time.sleep(0.25)
