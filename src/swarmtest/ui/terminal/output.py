"""Standard output and standard error: what others wrote reaches a terminal as visible text.

Names, paths, messages and tests come from stores, programs and files, and a terminal obeys the
control characters in them. So the program writes through a stream that shows such characters as
escapes. Only what swarmtest itself draws, such as a progress line, goes to the stream below it.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import IO, TextIO

from swarmtest.core.formatting import printable

_CLEAR_LINE = "\r\x1b[K"


class PrintableStream(io.TextIOWrapper):
    r"""A text stream that writes control characters as escapes; its `buffer` takes any bytes.

    >>> below = io.TextIOWrapper(io.BytesIO())
    >>> stream = PrintableStream(below)
    >>> stream.write("a\x1bb")
    3
    >>> stream.buffer.getvalue()
    b'a\\x1bb'
    """

    def __init__(self, below: io.TextIOWrapper) -> None:
        below.reconfigure(errors="replace")
        below.flush()
        super().__init__(
            below.buffer,
            encoding="utf-8" if _is_ascii(below.encoding) else below.encoding,
            # A character that the terminal cannot show must not end a campaign.
            errors="replace",
            line_buffering=below.line_buffering,
            write_through=True,  # what is written to the stream below comes after
        )
        self.below = below
        # click would write UTF-8 past a stream that says that its encoding is ASCII.
        self._only_ascii = _is_ascii(below.encoding)

    def __del__(self) -> None:
        # The destructor of the base class closes the buffer, which is that of the stream below.
        try:  # noqa: SIM105  # contextlib may be gone by then
            self.detach()
        except (ValueError, OSError):
            pass

    def write(self, text: str, /) -> int:
        """Write a text, and return its length."""
        shown = printable(text)
        if self._only_ascii:
            shown = shown.encode("ascii", "replace").decode()
        super().write(shown)
        return len(text)


def _is_ascii(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "ascii"


def protect_terminal() -> None:
    """Make standard output and standard error printable, for the rest of the process."""
    _open_missing_streams()
    sys.stdout, sys.stderr = _protected(sys.stdout), _protected(sys.stderr)


def _open_missing_streams() -> None:
    """Let streams that were closed be the null device: a file would take their descriptors."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stdin is None:
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def _protected(stream: TextIO) -> TextIO:
    if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, PrintableStream):
        return PrintableStream(stream)
    return stream


def unescaped(stream: IO[str]) -> IO[str]:
    """Return the stream for what swarmtest draws itself; escape every other text before."""
    return stream.below if isinstance(stream, PrintableStream) else stream


def show_status(text: str, stream: IO[str] | None = None) -> None:
    """Replace the line of a terminal where the cursor is; the default is standard error.

    An empty text clears the line.
    """
    below = unescaped(stream or sys.stderr)
    below.write(_CLEAR_LINE + printable(" ".join(text.split())))
    below.flush()
