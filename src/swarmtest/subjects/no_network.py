"""Keep the network off while a derived test runs: random calls should not reach other hosts.

Only this process is restricted, and only through Python's `socket`: connections and look-ups of
other hosts raise `OSError`, which a derived machine takes as a rejected call. Sockets of this host
(loopback, Unix) work as usual.
"""

from __future__ import annotations

import sys
from typing import Any

_LOCAL = ("localhost", "localhost.localdomain", "::1", "", None)


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

    def __init__(self) -> None:
        self._module: Any = None
        self._kept: dict[str, Any] = {}

    def __enter__(self) -> NoNetwork:
        # A program that has not imported it yet may do so later; it is small.
        import socket

        self._module = sys.modules.get("socket", socket)
        names = ("connect", "connect_ex", "sendto")
        own = vars(self._module.socket)
        self._kept = {name: own.get(name) for name in names}
        for name in names:
            setattr(self._module.socket, name, _checked(getattr(self._module.socket, name)))
        self._look_up = self._module.getaddrinfo
        self._module.getaddrinfo = _checked_look_up(self._look_up)
        return self

    def __exit__(self, *error: object) -> None:
        for name, method in self._kept.items():
            if method is None:
                delattr(self._module.socket, name)
            else:
                setattr(self._module.socket, name, method)
        self._module.getaddrinfo = self._look_up


def _checked(method: Any) -> Any:
    def checked(self: Any, *arguments: Any) -> Any:
        # The address is the last argument, also of sendto(data, flags, address).
        if arguments and not is_local(arguments[-1]):
            raise NetworkIsOff(arguments[-1][0])
        return method(self, *arguments)

    return checked


def _checked_look_up(look_up: Any) -> Any:
    def checked(host: Any, *arguments: Any, **named: Any) -> Any:
        if not _is_local_host(host):
            raise NetworkIsOff(host)
        return look_up(host, *arguments, **named)

    return checked
