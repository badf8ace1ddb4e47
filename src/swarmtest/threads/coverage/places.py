"""Places where a program synchronises, by small numbers."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import NamedTuple


class Place(NamedTuple):
    """An instruction that synchronises."""

    code: CodeType
    instruction: int
    kind: str
    """What is done there: ``lock.acquire``, ``queue.get``."""

    @property
    def line(self) -> int:
        """The line it is on."""
        for begin, end, line in self.code.co_lines():
            if begin <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno


class Places:
    """All places that were seen; looked up at each synchronisation, so by what is at hand."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self.numbers: dict[tuple[int, int, str], int] = {}
        """By the id of the code, the instruction, and what is done."""

    def number(self, kind: str, frame: FrameType) -> int:
        """The number of the place where a frame is."""
        code, instruction = frame.f_code, frame.f_lasti
        number = self.numbers.get((id(code), instruction, kind))
        if number is None:
            number = len(self._places)
            self._places.append(Place(code, instruction, kind))  # so its id is not given again
            self.numbers[id(code), instruction, kind] = number
        return number

    def __getitem__(self, number: int) -> Place:
        return self._places[number]
