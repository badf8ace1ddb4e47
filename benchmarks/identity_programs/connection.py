"""A connection with numbered messages, a window, and messages that are sent again."""

from __future__ import annotations

from collections import deque

from switches import bug

from swarmtest import Machine, action, integers

BUGS = (
    "number wraps too late",
    "close keeps the queue",
    "acknowledged twice",
    "window after a resize",
    "sent again out of order",
)
NUMBERS = 6


class ProtocolError(Exception):
    """The other side would hang up."""


class Connection:
    def __init__(self) -> None:
        self.is_open = False
        self.window = 3
        self.next = 0
        self.waiting: deque[str] = deque()
        self.flying: deque[tuple[int, str]] = deque()

    def _fail(self, reason: str) -> None:
        raise ProtocolError(f"{reason} (next {self.next}, {len(self.flying)} in flight)")

    def open(self) -> None:
        if self.is_open:
            self._fail("open twice")
        self.is_open = True
        self.next = 0
        if self.waiting or self.flying:
            self._fail("there are messages before the start")

    def close(self) -> None:
        self.is_open = False
        self.flying.clear()
        if not (bug("close keeps the queue") and len(self.waiting) > 1):
            self.waiting.clear()

    def send(self, text: str) -> list[tuple[int, str]]:
        self.waiting.append(text)
        return self._fill()

    def _fill(self) -> list[tuple[int, str]]:
        sent = []
        while self.waiting and len(self.flying) < self.window:
            message = self.next, self.waiting.popleft()
            if not 0 <= self.next < NUMBERS:
                self._fail("the number is too large")
            most = NUMBERS + 1 if bug("number wraps too late") else NUMBERS
            self.next = (self.next + 1) % most
            self.flying.append(message)
            sent.append(message)
        return sent

    def acknowledge(self, number: int) -> list[tuple[int, str]]:
        numbers = [each for each, _ in self.flying]
        if number not in numbers:
            if bug("acknowledged twice") and self.flying and number == numbers[0] - 1:
                self.flying.popleft()
                return self._fill()
            return []
        while self.flying[0][0] != number:
            self.flying.popleft()
        self.flying.popleft()
        return self._fill()

    def resize(self, window: int) -> list[tuple[int, str]]:
        self.window = window
        if bug("window after a resize") and window < len(self.flying):
            self._fail("more in flight than the window")
        return self._fill()

    def again(self) -> list[tuple[int, str]]:
        """The messages that were not acknowledged."""
        if bug("sent again out of order"):
            return sorted(self.flying)
        return list(self.flying)


class ConnectionMachine(Machine):
    steps = 40

    def start(self) -> None:
        self.connection = Connection()
        self.sent = 0
        self.numbered = 0
        self.window = 3
        self.waiting: list[str] = []
        self.flying: list[tuple[int, str]] = []

    def _filled(self, got: list[tuple[int, str]]) -> None:
        """Send what fits into the window, and compare."""
        expected = []
        while self.waiting and len(self.flying) < self.window:
            message = self.numbered % NUMBERS, self.waiting.pop(0)
            self.numbered += 1
            self.flying.append(message)
            expected.append(message)
        assert got == expected, f"sent {got}, not {expected}"
        assert list(self.connection.flying) == self.flying, "others are in flight"

    @action(when=lambda self: not self.connection.is_open)
    def open(self) -> None:
        self.connection.open()
        self.numbered = 0

    @action(when=lambda self: self.connection.is_open)
    def close(self) -> None:
        self.connection.close()
        self.waiting, self.flying = [], []

    @action(when=lambda self: self.connection.is_open)
    def send(self) -> None:
        self.sent += 1
        self.waiting.append(f"message {self.sent}")
        self._filled(self.connection.send(f"message {self.sent}"))

    @action(number=integers(0, NUMBERS - 1), when=lambda self: self.connection.is_open)
    def acknowledge(self, number: int) -> None:
        numbers = [each for each, _ in self.flying]
        if number in numbers:
            del self.flying[: numbers.index(number) + 1]
        self._filled(self.connection.acknowledge(number))

    @action(when=lambda self: self.flying)
    def acknowledge_first(self) -> None:
        number, _ = self.flying.pop(0)
        self._filled(self.connection.acknowledge(number))

    @action(window=integers(1, 5), when=lambda self: self.connection.is_open)
    def resize(self, window: int) -> None:
        self.window = window
        self._filled(self.connection.resize(window))

    @action(when=lambda self: self.connection.is_open)
    def again(self) -> None:
        assert self.connection.again() == self.flying
