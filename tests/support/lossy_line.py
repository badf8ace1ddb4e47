"""A line to a PostgreSQL server that loses the answer to a COMMIT, as networks do."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path


class LossyLine:
    """Passes bytes on between clients and a server, on sockets in two directories."""

    def __init__(self, server: Path, here: Path) -> None:
        self.cuts = 0
        """How many answers to lose; counts down."""
        self._server = server / ".s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(here / ".s.PGSQL.5432"))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._carry, args=(client,)))
            self._threads[-1].start()

    def _carry(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server))
            other = {client: server, server: client}
            while True:
                for end in select.select([client, server], [], [])[0]:
                    data = end.recv(1 << 16)
                    if not data:
                        return
                    if end is client and b"COMMIT" in data and self.cuts:
                        self.cuts -= 1
                        server.sendall(data)
                        server.recv(1 << 16)  # it is done, and nobody will hear of it
                        return
                    other[end].sendall(data)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=10)


@contextlib.contextmanager
def lossy_line(server: Path, here: Path) -> Iterator[LossyLine]:
    """A line from sockets in `here` to the server with its socket in `server`."""
    line = LossyLine(server, here)
    try:
        yield line
    finally:
        line.close()
