"""Keep the network off while a derived test runs: random calls should not reach other hosts.

Only this process is restricted, and only through Python's `socket`: connections and look-ups of
other hosts raise `OSError`, which a derived machine takes as a rejected call. Sockets of this host
(loopback, Unix) work as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from swarmtest.processes.held_change import HeldChange

_LOCAL = ("localhost", "localhost.localdomain", "::1", "", None)
_METHODS = {"connect": 1, "connect_ex": 1, "sendto": 2, "sendmsg": 4}
"""The methods that take an address, with the fewest arguments of a call that has one."""
_LOOK_UPS = ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr")


class NetworkIsOff(OSError):
    """A test has tried to reach another host."""

    def __init__(self, host: object) -> None:
        super().__init__(f"tests of --api do not reach other hosts like {host!r}: use --network")


def is_local(address: Any) -> bool:
    """Return whether an address is on this host: loopback, or the path of a Unix socket.

    >>> is_local(("127.0.0.1", 80)), is_local("/run/bus"), is_local(("example.org", 80))
    (True, True, False)
    """
    if not isinstance(address, tuple) or not address:
        return True
    return _is_local_host(address[0])


def _is_local_host(host: Any) -> bool:
    name = host.decode(errors="replace") if isinstance(host, bytes) else host
    return name in _LOCAL or (isinstance(name, str) and name.startswith("127."))


class NoNetwork:
    """While it is entered, sockets reach this host only.

    >>> import socket
    >>> with NoNetwork():
    ...     try:
    ...         socket.create_connection(("example.org", 80))
    ...     except OSError as error:
    ...         print(type(error).__name__)
    NetworkIsOff
    """

    _let_go: Callable[[], object] | None = None

    def __enter__(self) -> NoNetwork:
        if self._let_go is None:
            self._let_go = _BAN.hold(self)
        return self

    def __exit__(self, *error: object) -> None:
        let_go, self._let_go = self._let_go, None
        if let_go is not None:
            let_go()


def _ban(undo: ExitStack) -> None:
    # A program that has not imported it yet may do so later; it is small.
    import socket

    own = vars(socket.socket)
    for name, fewest in _METHODS.items():
        if name in own:
            undo.callback(setattr, socket.socket, name, own[name])
        else:  # inherited from the class that is written in C
            undo.callback(_remove, socket.socket, name)
        setattr(socket.socket, name, _checked(getattr(socket.socket, name), fewest))
    for name in _LOOK_UPS:
        look_up = getattr(socket, name)
        undo.callback(setattr, socket, name, look_up)
        setattr(socket, name, _checked_look_up(look_up))


_BAN = HeldChange(_ban)


def _remove(owner: Any, name: str) -> None:
    if name in vars(owner):  # the program under test may have removed it
        delattr(owner, name)


def _checked(method: Any, fewest: int) -> Any:
    def checked(self: Any, *arguments: Any) -> Any:
        # The address is the last argument, also of sendto(data, flags, address).
        if len(arguments) >= fewest and not is_local(arguments[-1]):
            raise NetworkIsOff(arguments[-1][0])
        return method(self, *arguments)

    return checked


def _checked_look_up(look_up: Any) -> Any:
    def checked(host: Any, *arguments: Any, **named: Any) -> Any:
        if not _is_local_host(host):
            raise NetworkIsOff(host)
        return look_up(host, *arguments, **named)

    return checked
