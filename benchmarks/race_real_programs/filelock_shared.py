"""filelock, changelog of 3.11.0: the state of a lock is local to each thread (pull request 219)."""

import tempfile
import threading
from pathlib import Path

from filelock import FileLock


def program():
    with tempfile.TemporaryDirectory() as place:
        lock, state = FileLock(Path(place, "lock")), {"total": 0}

        def add():
            with lock:
                total = state["total"]
                state["total"] = total + 1

        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert state["total"] == 2
