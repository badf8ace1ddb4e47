"""Frames between the processes of a campaign: a length, then marshalled plain data.

`marshal` is several times faster than pickle for lists of tuples of numbers and bytes, and both
ends are always the same Python, because the campaign starts its workers itself.
"""

from __future__ import annotations

import marshal
import os
import struct
from typing import Any

_HEADER = struct.Struct("<I")
_LARGEST = 1 << 30


def send(fd: int, message: Any) -> None:
    """Write one frame; blocks while the pipe is full."""
    body = marshal.dumps(message)
    view = memoryview(_HEADER.pack(len(body)) + body)
    while view:
        view = view[os.write(fd, view) :]


class Frames:
    """Reads frames from a descriptor; a frame that never arrives whole is dropped.

    >>> read, write = os.pipe()
    >>> send(write, ("hello", 1))
    >>> Frames(read).receive()
    [('hello', 1)]
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = bytearray()
        self.ended = False
        self.broken = False
        """Whether something came that is no frame: somebody else wrote to the descriptor."""

    def receive(self) -> list[Any]:
        """The frames completed by one read; sets `ended` at the end of the stream."""
        try:
            data = os.read(self.fd, 1 << 20)
        except OSError:
            data = b""
        if not data:
            self.ended = True
        self._buffer += data
        frames: list[Any] = []
        start = 0
        while len(self._buffer) - start >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer, start)
            if size > _LARGEST:
                self.broken = self.ended = True
                return frames
            end = start + _HEADER.size + size
            if len(self._buffer) < end:
                break
            try:
                frames.append(marshal.loads(self._buffer[start + _HEADER.size : end]))
            except (ValueError, EOFError, TypeError):
                self.broken = self.ended = True
                return frames
            start = end
        del self._buffer[:start]
        return frames
