"""The main thread of a run that is over can be interrupted, wherever it is."""

from __future__ import annotations

import signal
import threading
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Iterator
from contextlib import contextmanager

from swarmtest.threads.raw import get_ident


@contextmanager
def interruptible() -> Iterator[None]:
    """See that SIGINT is a KeyboardInterrupt while a run is on.

    A shell starts what runs in the background with SIGINT ignored, as some CI systems do; and a
    program may have a handler of its own.
    """
    before = getsignal(signal.SIGINT)  # signal's own looks the answer up in an enumeration
    if before in (signal.default_int_handler, None) or get_ident() != threading.main_thread().ident:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
