"""portalocker, changelog of 4.2.0: "Fixed RLock losing acquire counts when two threads nested"."""

import tempfile
import threading
from pathlib import Path

import portalocker


def program():
    with tempfile.TemporaryDirectory() as place:
        lock = portalocker.RLock(str(Path(place, "lock")))
        file = lock.acquire()
        threads = [threading.Thread(target=lock.acquire) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lock.release()
        lock.release()
        assert not file.closed, "released although one acquire is left"
        lock.release()
