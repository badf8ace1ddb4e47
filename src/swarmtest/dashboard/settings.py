"""What a dashboard was asked to be."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Settings:
    """How one dashboard is served.

    >>> Settings(store=None).is_local, Settings(store=None, host="0.0.0.0").is_local
    (True, False)
    """

    store: str | None
    """As `swarmtest.store.open_store` takes it; None: the usual place."""
    host: str = LOOPBACK
    port: int = 8321
    read_only: bool = False
    token: str = ""
    """What a browser has to bring; empty: nothing, which is for loopback only."""
    seconds: float = 1.0
    """Between two looks at the store."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine and no other.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("10.0.0.5")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
