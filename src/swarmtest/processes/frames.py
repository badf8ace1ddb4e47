"""Messages between processes: a length, then the message as bytes.

Plain data goes by `marshal`, which is several times faster than pickle for lists of tuples of
numbers and bytes. Both ends are always the same Python, because one started the other. Other values
go by `pickle`.
"""

from __future__ import annotations

import marshal
import os
import pickle
import struct
from collections.abc import Callable
from typing import Any

_HEADER = struct.Struct("<I")
_LARGEST = 1 << 30
_read, _write = os.read, os.write  # a test may replace what `os` has


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes; wait while a pipe is full."""
    view = memoryview(data)
    while view:
        view = view[_write(fd, view) :]


def send(fd: int, message: Any, dumps: Callable[[Any], bytes] = marshal.dumps) -> None:
    """Write one frame; wait while the pipe is full."""
    body = dumps(message)
    write_all(fd, _HEADER.pack(len(body)) + body)


def send_pickled(fd: int, message: Any) -> None:
    """Write one frame for `Frames(fd, pickle.loads)`."""
    send(fd, message, pickle.dumps)


class Frames:
    """Reads frames from a descriptor; a frame that never arrives whole is dropped.

    >>> read, write = os.pipe()
    >>> send(write, ("hello", 1))
    >>> Frames(read).receive()
    [('hello', 1)]
    """

    def __init__(self, fd: int, loads: Callable[[bytes], Any] = marshal.loads) -> None:
        self.fd = fd
        self._loads = loads
        self._buffer = bytearray()
        self.ended = False
        self.broken = False
        """Whether something came that is no frame: another program wrote to the descriptor."""

    def receive(self) -> list[Any]:
        """Return the frames completed by one read; set `ended` at the end of the stream."""
        try:
            data = _read(self.fd, 1 << 20)
        except OSError:
            data = b""
        if not data:
            self.ended = True
        self._buffer += data
        frames: list[Any] = []
        start = 0
        while len(self._buffer) - start >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._buffer, start)
            end = start + _HEADER.size + size
            if size > _LARGEST:
                self.broken = self.ended = True
                return frames
            if len(self._buffer) < end:
                break
            try:
                frames.append(self._loads(bytes(self._buffer[start + _HEADER.size : end])))
            except (ValueError, EOFError, TypeError, pickle.UnpicklingError):
                self.broken = self.ended = True
                return frames
            start = end
        del self._buffer[:start]
        return frames

    def next(self) -> Any:
        """Wait for the next frame, if frames are sent one at a time; None: the stream ended."""
        while not self.ended:
            for frame in self.receive():
                return frame
        return None
