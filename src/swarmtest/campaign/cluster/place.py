"""Where a campaign's workers are: a Dask scheduler that runs somewhere."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

from swarmtest.errors import UserError

_CONNECT_SECONDS = 10.0
_PATIENCE = 300.0


class Place(Protocol):
    """A way to a scheduler."""

    name: str
    """How a person would name it."""
    connect: float
    """Seconds that the first connection may take."""
    patience: float
    """Seconds without any worker, or without the scheduler, after which a campaign gives up."""

    def client(self) -> Any:
        """A new connection; an exception of Dask's if nobody answers."""

    def unreachable(self, why: str) -> str:
        """One line for somebody who could not be connected."""

    def close(self) -> None:
        """Let go of what was started for it."""


@dataclass
class Scheduler:
    """A scheduler that others have started."""

    address: str
    """``tcp://HOST:PORT`` or ``tls://HOST:PORT``."""
    connect: float = _CONNECT_SECONDS
    patience: float = _PATIENCE
    tls: dict[str, str] = field(default_factory=dict)
    """Files: ``ca``, ``cert``, ``key``; otherwise as Dask is configured."""
    _met: bool = False

    @property
    def name(self) -> str:
        """Its address."""
        return self.address

    def client(self) -> Any:
        """A new connection; the first may take its time, later ones are tried again and again."""
        import distributed

        connect: Any = distributed.Client
        timeout = min(self.connect, 1.0) if self._met else self.connect
        security = self._security()
        _greet(self.address, security, timeout)
        found = connect(
            self.address,
            timeout=timeout,
            set_as_default=False,
            name="swarmtest",
            security=security,
        )
        self._met = True
        return found

    def _security(self) -> Any:
        if not self.address.startswith("tls://"):
            return None
        from distributed import security

        make: Any = security.Security
        files = {
            "tls_ca_file": self.tls.get("ca"),
            "tls_client_cert": self.tls.get("cert"),
            "tls_client_key": self.tls.get("key"),
        }
        given = {name: file for name, file in files.items() if file}
        made = make(require_encryption=True, **given)
        try:
            context = made.get_connection_args("client").get("ssl_context")
        except (OSError, ValueError) as error:
            raise UserError(f"{self.address}: cannot use its certificates: {error}") from None
        if context is None:
            raise UserError(
                f"{self.address}: say which certificates: --engine-option tls-ca=FILE "
                "(and tls-cert=FILE, tls-key=FILE), or configure Dask (distributed.comm.tls)"
            )
        return made

    def unreachable(self, why: str) -> str:
        """What was tried."""
        return (
            f"no Dask scheduler answers at {self.address} (tried for {self.connect:g} s: {why}): "
            "start one with `dask scheduler`, or mend --engine"
        )

    def close(self) -> None:
        """The scheduler is not ours to end."""


def _greet(address: str, security: Any, timeout: float) -> None:
    """Shake hands, once: Dask's client would wait for ever for the hand of something else."""
    from distributed.comm import core

    connect: Any = core.connect
    options = security.get_connection_args("client") if security else {}
    problems: list[BaseException] = []

    async def shake() -> None:
        try:
            # The connection has the timeout to itself, so that it can tell why there is none.
            met = await asyncio.wait_for(connect(address, timeout, **options), timeout + 1)
            met.abort()
        except TimeoutError:
            problems.append(OSError("something listens there that is no Dask scheduler"))
        except Exception as error:
            problems.append(error if isinstance(error, OSError) else OSError(str(error)))

    # A thread, because the campaign's may run a loop already, as in a notebook.
    shaking = threading.Thread(target=lambda: asyncio.run(shake()), daemon=True)
    shaking.start()
    shaking.join()
    if problems:
        raise problems[0]
