"""Blocking points of a run: sockets, pipes, selectors, locks of files, and other processes.

A thread of a controlled run that would block in one of these calls lets other threads run until
the call can go on. Without a policy, and in threads that run freely, the calls block as ever.
"""

from __future__ import annotations

import fcntl
import functools
import io
import os
import select
import selectors
import socket
import stat
import subprocess
from collections.abc import Callable
from multiprocessing import connection, synchronize
from typing import Any

from swarmtest.race.primitives.policy import current

_PIECE = select.PIPE_BUF
"""The number of bytes that fit into a pipe that is ready."""
_raw_read, _raw_write, _raw_waitpid = os.read, os.write, os.waitpid
_raw_select, _raw_open, _raw_flock = select.select, io.open, fcntl.flock
_READABLE, _WRITABLE = select.POLLIN | select.POLLPRI, select.POLLOUT


def _is_ready(descriptor: int, events: int) -> bool:
    """Return whether a descriptor is ready; a closed one never is."""
    if descriptor < 0:
        return False
    poll = select.poll()
    poll.register(descriptor, events)
    return any(not event & select.POLLNVAL for _, event in poll.poll(0))


def _wait(kind: str, obj: Any, descriptor: Callable[[], int], events: int) -> bool | None:
    """Let other threads run until a descriptor is ready; None if this thread is not controlled."""
    policy = current.policy
    if policy is None:
        return None
    return policy.wait_until(kind, obj, lambda: _is_ready(descriptor(), events), None)


# Sockets.


def _socket_method(name: str, events: int) -> Callable[..., Any]:
    raw = getattr(socket.socket, name)
    kind = f"socket.{name.strip('_')}"

    @functools.wraps(raw)
    def waiting(self: Any, *args: Any) -> Any:
        _wait_for_socket(self, kind, events)
        return raw(self, *args)

    return waiting


def _wait_for_socket(sock: Any, kind: str, events: int) -> None:
    policy = current.policy
    if policy is None:
        return
    timeout = sock.gettimeout()
    if timeout == 0 or sock.fileno() < 0:
        return
    if policy.wait_until(kind, sock, lambda: _is_ready(sock.fileno(), events), timeout) is False:
        raise TimeoutError("timed out")


_raw_send, _raw_sendall = socket.socket.send, socket.socket.sendall


@functools.wraps(_raw_send)
def _send(self: Any, data: Any, flags: int = 0) -> int:
    if current.policy is None or self.gettimeout() == 0:
        return _raw_send(self, data, flags)
    while True:
        _wait_for_socket(self, "socket.send", _WRITABLE)
        try:
            return _raw_send(self, data, flags | socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue


@functools.wraps(_raw_sendall)
def _sendall(self: Any, data: Any, flags: int = 0) -> None:
    if current.policy is None or self.gettimeout() == 0:
        _raw_sendall(self, data, flags)
        return
    left = memoryview(data).cast("B")
    while left:
        left = left[_send(self, left, flags) :]


# Descriptors: pipes.


def _is_stream(descriptor: int) -> bool:
    """Return whether reading may block: pipes and sockets that are not in non-blocking mode."""
    mode = os.fstat(descriptor).st_mode
    return (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and os.get_blocking(descriptor)


@functools.wraps(_raw_read)
def _read(descriptor: int, length: int, /) -> bytes:
    if current.policy is not None and _is_stream(descriptor):
        _wait("pipe.read", None, lambda: descriptor, _READABLE)
    return _raw_read(descriptor, length)


@functools.wraps(_raw_write)
def _write(descriptor: int, data: Any, /) -> int:
    if current.policy is None or not _is_stream(descriptor):
        return _raw_write(descriptor, data)
    left = memoryview(data).cast("B")
    length = len(left)
    while left:
        if _wait("pipe.write", None, lambda: descriptor, _WRITABLE) is None:
            return length - len(left) + _raw_write(descriptor, left)
        left = left[_raw_write(descriptor, left[:_PIECE]) :]
    return length


class PipeFile(io.FileIO):
    """The raw file of a pipe, which lets other threads run while it waits."""

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        _wait("pipe.read", self, self.fileno, _READABLE)
        return super().readinto(buffer) or 0

    def read(self, size: int | None = -1) -> bytes | None:  # type: ignore[override]
        """Read up to `size` bytes, or all."""
        if size is None or size < 0:
            return self.readall()
        _wait("pipe.read", self, self.fileno, _READABLE)
        return super().read(size)

    def readall(self) -> bytes:
        """Read until the end."""
        pieces = []
        while piece := self.read(io.DEFAULT_BUFFER_SIZE):
            pieces.append(piece)
        return b"".join(pieces)

    def write(self, data: Any) -> int:
        """Write all of the data."""
        return _write(self.fileno(), data)


@functools.wraps(_raw_open)
def _open(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **options: Any) -> Any:
    if current.policy is None or not isinstance(file, int) or "+" in mode or not _is_stream(file):
        return _raw_open(file, mode, buffering, *args, **options)
    return _open_pipe(file, mode, buffering, *args, **options)


def _open_pipe(
    file: int,
    mode: str,
    buffering: int,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """Do what `open` does with a descriptor, on a raw file of ours."""
    raw = PipeFile(file, mode.replace("b", "").replace("t", ""), closefd)
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    kind: Any = io.BufferedReader if "r" in mode else io.BufferedWriter
    buffered = kind(raw, size)
    if "b" in mode:
        return buffered
    text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
    text.mode = mode  # type: ignore[misc]
    return text


# Selectors.


@functools.wraps(_raw_select)
def _selects(
    readable: Any, writable: Any, special: Any, timeout: float | None = None, /
) -> tuple[list[Any], list[Any], list[Any]]:
    groups = list(readable), list(writable), list(special)

    def select_now() -> Any:
        ready = _raw_select(*groups, 0)
        return ready if any(ready) else None

    ready = _select("select", None, select_now, timeout)
    if ready is _NOT_CONTROLLED:
        return _raw_select(*groups, timeout)
    return ready or ([], [], [])


def _selector_method(raw: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(raw)
    def waiting(self: Any, timeout: float | None = None) -> Any:
        ready = _select("select", self, lambda: raw(self, 0), timeout)
        return raw(self, timeout) if ready is _NOT_CONTROLLED else ready or []

    return waiting


_NOT_CONTROLLED = object()


def _select(kind: str, obj: Any, select_now: Callable[[], Any], timeout: float | None) -> Any:
    """Return what is ready, at the latest when the simulated time is over."""
    policy = current.policy
    if policy is None:
        return _NOT_CONTROLLED
    if timeout is not None and timeout <= 0:
        polled = policy.wait_until(kind, obj, lambda: True, None)
        return _NOT_CONTROLLED if polled is None else select_now()
    ready = None

    def is_ready() -> bool:
        nonlocal ready
        ready = select_now()
        return bool(ready)

    waited = policy.wait_until(kind, obj, is_ready, timeout)
    return _NOT_CONTROLLED if waited is None else ready


# Child processes, and the locks that processes share.


@functools.wraps(_raw_waitpid)
def _waitpid(pid: int, options: int, /) -> tuple[int, int]:
    policy = current.policy
    if policy is None or options & os.WNOHANG:
        return _raw_waitpid(pid, options)
    ended: list[tuple[int, int]] = []

    def is_ready() -> bool:
        if not ended:
            answer = _raw_waitpid(pid, options | os.WNOHANG)
            ended.extend([answer] if answer[0] else [])
        return bool(ended)

    if not is_ready() and policy.wait_until("process.wait", None, is_ready, None) is None:
        return _raw_waitpid(pid, options)
    return ended[0]


@functools.wraps(_raw_flock)
def _flock(descriptor: Any, operation: int, /) -> None:
    policy = current.policy
    if policy is None or operation & (fcntl.LOCK_NB | fcntl.LOCK_UN):
        _raw_flock(descriptor, operation)
        return

    def is_ready() -> bool:
        try:
            _raw_flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    if not is_ready() and policy.wait_until("file.lock", None, is_ready, None) is None:
        _raw_flock(descriptor, operation)


def _try_wait(self: Any, wait_flags: int) -> tuple[int, int]:
    """Replace `subprocess.Popen._try_wait`, which has its own name of `os.waitpid`."""
    try:
        return _waitpid(self.pid, wait_flags)
    except ChildProcessError:
        return self.pid, 0


def _make_methods(self: Any) -> None:
    """Replace `SemLock._make_methods`: locks of `multiprocessing` between the run's threads."""
    self.acquire = functools.partial(acquire, self._semlock)
    self.release = self._semlock.release


def acquire(semlock: Any, block: bool = True, timeout: float | None = None) -> bool:
    """Acquire a lock that processes share."""
    policy = current.policy
    if policy is None or not block:
        taken: bool = semlock.acquire(block, timeout)
        return taken

    def take() -> bool:
        while not semlock.acquire(False):
            waited = policy.wait_until(
                "process lock.acquire", semlock, lambda: not semlock._is_zero(), timeout
            )
            if waited is None:
                return bool(semlock.acquire(True, timeout))
            if not waited:
                return False
        return True

    return bool(policy.operation("process lock.acquire", semlock, take))


def _enter(self: Any) -> Any:
    return self.acquire()


_raw_connection_recv = connection.Connection._recv  # type: ignore[attr-defined]
_raw_connection_send = connection.Connection._send  # type: ignore[attr-defined]


def _connection_recv(self: Any, size: int) -> Any:
    return _raw_connection_recv(self, size, read=_read)


def _connection_send(self: Any, data: Any) -> None:
    _raw_connection_send(self, data, write=_write)


_RECEIVING = ("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "_accept")
_SENDING = ("sendto", "sendmsg")
_SELECTORS = {
    kind
    for name in ("SelectSelector", "_PollLikeSelector", "EpollSelector", "KqueueSelector")
    if (kind := getattr(selectors, name, None)) is not None and "select" in vars(kind)
}
METHODS: list[tuple[type, str, Callable[..., Any]]] = [
    *((socket.socket, name, _socket_method(name, _READABLE)) for name in _RECEIVING),
    *((socket.socket, name, _socket_method(name, _WRITABLE)) for name in _SENDING),
    (socket.socket, "send", _send),
    (socket.socket, "sendall", _sendall),
    *((kind, "select", _selector_method(kind.select)) for kind in _SELECTORS),
    (subprocess.Popen, "_try_wait", _try_wait),
    (synchronize.SemLock, "_make_methods", _make_methods),
    (synchronize.SemLock, "__enter__", _enter),
    (connection.Connection, "_recv", _connection_recv),
    (connection.Connection, "_send", _connection_send),
]
FUNCTIONS = {
    _raw_read: _read,
    _raw_write: _write,
    _raw_waitpid: _waitpid,
    _raw_select: _selects,
    _raw_flock: _flock,
}
"""What takes the places of functions, in every module that has their names."""
OPEN = _open
"""What takes the place of `io.open`; the built-in name stays as it is."""
PROCESS_LOCKS = (
    synchronize.Lock,
    synchronize.RLock,
    synchronize.Semaphore,
    synchronize.BoundedSemaphore,
)
"""The locks that processes share."""
