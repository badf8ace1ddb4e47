"""How every subject is run as a plain threaded program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any


def run_threads(state: Any, workers: Sequence[Callable[[Any], None]]) -> None:
    """A thread for each worker; come back when all have ended."""
    threads = [threading.Thread(target=worker, args=(state,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
