"""FTPServer: a thread for each client, and several data races.

After the paper's third program, without sockets: clients log in, send files and leave; another
thread lists who is there, and one drops idle clients. Races: the number of clients is read and
written apart; the list of sessions changes while it is read; a transfer may lose its data, or the
bytes that it counted.
"""

from __future__ import annotations

import threading

from threaded import run_threads

FILES = [b"a" * 10, b"b" * 20]
CLIENTS = 3


class Session:
    """What the server knows of a client."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.position = 0
        self.checksum = 0
        self.data: bytearray | None = None

    def open_data(self) -> None:
        self.data = bytearray()

    def close_data(self) -> None:
        self.data = None

    def line(self) -> str:
        return f"{self.user} {self.position}"


class Server:
    """Sessions and statistics."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.lock = threading.Lock()
        self.logins = 0
        self.received = 0
        self.log: list[str] = []

    def count_login(self) -> None:
        self.write_logins(self.logins + 1)

    def write_logins(self, logins: int) -> None:
        self.logins = logins

    def log_in(self, user: str) -> Session:
        session = Session(user)
        self.sessions[user] = session
        self.count_login()
        return session

    def log_out(self, session: Session) -> None:
        del self.sessions[session.user]

    def note(self, line: str) -> None:
        with self.lock:
            self.log.append(line)

    def store(self, session: Session, content: bytes) -> None:
        session.open_data()
        for byte in content:
            session.position += 1
            session.checksum = (session.checksum * 31 + byte) % 65_521
        self.note(f"{session.user} has sent {session.position} bytes")
        if session.data is not None:
            self.add_received(len(content))
            session.data.extend(content)
        session.close_data()

    def add_received(self, size: int) -> None:
        total = self.received
        self.note("received")
        self.received = total + size

    def who(self) -> list[str]:
        return [session.line() for session in self.sessions.values()]

    def drop_idle(self) -> None:
        for session in list(self.sessions.values()):
            if session.position == 0:
                session.close_data()


def client(server: Server, number: int) -> None:
    session = server.log_in(f"user {number}")
    for content in FILES:
        server.store(session, content)
    server.log_out(session)


def client_0(server: Server) -> None:
    client(server, 0)


def client_1(server: Server) -> None:
    client(server, 1)


def client_2(server: Server) -> None:
    client(server, 2)


def watcher(server: Server) -> None:
    server.note(" ".join(server.who()))
    server.drop_idle()


WORKERS = [client_0, client_1, watcher, client_2]


def setup() -> Server:
    return Server()


def holds(server: Server) -> bool:
    return server.logins == CLIENTS and server.received == CLIENTS * sum(map(len, FILES))


def program() -> None:
    """The whole program; it raises if something went wrong."""
    server = setup()
    run_threads(server, WORKERS)
    assert server.logins == CLIENTS, f"{server.logins} of {CLIENTS} logins counted"
    assert holds(server), f"{server.received} bytes received"
