"""A machine with a few faults; each test adds a byte to a file, which shows how far it is."""

from __future__ import annotations

import os
import time
from typing import Any

from swarmtest import Machine, Pool, action, consumes, integers, invariant

NAP = float(os.environ.get("NAP", "0")) / 1000
TESTS_RUN = os.open(os.environ["TESTS_RUN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)


class Steady(Machine):
    """Numbers and files."""

    steps = (5, 30)
    files = Pool()

    def start(self) -> None:
        """Begin with nothing."""
        self.numbers: list[int] = []
        self.opened = 0
        os.write(TESTS_RUN, b".")
        time.sleep(NAP)  # not under an if: what a test reaches must not depend on it

    @action(value=integers(0, 9))
    def push(self, value: int) -> None:
        """Add a number."""
        self.numbers.append(value)
        if len(self.numbers) > 12:
            self.event("many numbers")

    @action(when=lambda self: self.numbers)
    def pop(self) -> None:
        """Remove a number."""
        self.event(f"popped {self.numbers.pop() // 4}")

    @action(into=files)
    def open(self) -> str:
        """Open a file."""
        self.opened += 1
        return f"file {self.opened}"

    @action(file=consumes(files))
    def close(self, file: Any) -> None:
        """Close a file, which fails at times."""
        self.opened -= 1
        if len(self.numbers) == 3:
            raise KeyError(file)
        if len(self.numbers) == 11:
            os._exit(3)

    @invariant
    def few_files(self) -> None:
        """Check that few files are open."""
        assert self.opened < 9
