"""Any file as a test: for those who bring a command that tells whether it is interesting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from swarmtest.errors import UserError
from swarmtest.reduction import AskedAs, minimised
from swarmtest.subjects.command.command_test import CommandTest
from swarmtest.subjects.command.reducing import reduced_text

PARTS = ("lines", "characters", "bytes")


class PlainFile:
    """A file whose parts are lines (blocks in braces first), then characters or bytes if asked for.

    It can be reduced, not run.

    >>> file = PlainFile("report.txt", "characters")
    >>> test = file.test(b"hay\\nneedle\\nhay\\n")
    >>> file.content(file.reduced(test, lambda one: b"edl" in file.content(one)))
    b'edl'
    """

    def __init__(self, path: str, parts: str = "lines") -> None:
        if parts not in PARTS:
            raise UserError(f"--parts {parts}: choose from {', '.join(PARTS)}")
        self.name = path
        self.suffix = Path(path).suffix or ".txt"
        self.part = parts.removesuffix("s")
        self.harness = ""
        self.seconds: float | None = None
        self.interruptible = True

    def test(self, content: bytes) -> Any:
        """The test that a file's content is."""
        return CommandTest(self.name, content).to_json()

    def content(self, test: Any) -> bytes:
        """The file's content."""
        return CommandTest.from_json(test).content

    def code(self, test: Any) -> str:
        """The file for a terminal."""
        return CommandTest.from_json(test).shown

    def size(self, test: Any) -> int:
        """How many parts it has."""
        whole = CommandTest.from_json(test)
        return whole.size if self.part == "line" else len(self._pieces(whole))

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """The parts that are needed."""
        still = AskedAs(interesting, CommandTest.to_json)
        small = reduced_text(CommandTest.from_json(test), still)
        if self.part != "line":

            def joined(pieces: Sequence[bytes]) -> Any:
                return small.with_content(b"".join(pieces)).to_json()

            kept = minimised(self._pieces(small), AskedAs(interesting, joined))
            small = small.with_content(b"".join(kept))
        return small.to_json()

    def parts(self, test: Any) -> list[bytes]:
        """Its parts: lines that are not blank, or what they are made of."""
        whole = CommandTest.from_json(test)
        if self.part != "line":
            return self._pieces(whole)
        return [line for line in whole.content.splitlines(keepends=True) if line.strip()]

    def with_parts(self, test: Any, parts: Sequence[bytes]) -> Any:
        """The file with other parts."""
        return CommandTest.from_json(test).with_content(b"".join(parts)).to_json()

    def _pieces(self, test: CommandTest) -> list[bytes]:
        if self.part == "character":
            try:
                return [letter.encode() for letter in test.content.decode()]
            except UnicodeDecodeError:
                raise UserError(f"{self.name} is no text: --parts bytes") from None
        return [test.content[i : i + 1] for i in range(len(test.content))]
