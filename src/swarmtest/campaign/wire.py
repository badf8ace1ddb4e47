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

    def receive(self) -> list[Any]:
        """The frames completed by one read; sets `ended` at the end of the stream."""
        try:
            data = os.read(self.fd, 1 << 20)
        except (ConnectionResetError, OSError):
            data = b""
        if not data:
            self.ended = True
        self._buffer += data
        frames, start = [], 0
        while len(self._buffer) - start >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer, start)
            end = start + _HEADER.size + size
            if len(self._buffer) < end:
                break
            frames.append(marshal.loads(memoryview(self._buffer)[start + _HEADER.size : end]))
            start = end
        del self._buffer[:start]
        return frames

    def drain(self) -> list[Any]:
        """All frames up to the end of the stream."""
        frames: list[Any] = []
        while not self.ended:
            frames += self.receive()
        return frames
