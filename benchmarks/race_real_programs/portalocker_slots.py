"""portalocker, changelog of 4.2.0: "Fixed two threads sharing one BoundedSemaphore ..."."""

import tempfile
import threading
from contextlib import suppress

import portalocker


def program():
    with tempfile.TemporaryDirectory() as place:
        semaphore = portalocker.NamedBoundedSemaphore(2, name="slots", directory=place)
        taken = []

        def take():
            with suppress(AssertionError, portalocker.exceptions.LockException):
                taken.append(semaphore.acquire())

        threads = [threading.Thread(target=take) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        slots = [lock for lock in taken if lock is not None]
        for lock in slots:
            lock.release()
        assert len(slots) == 1, f"{len(slots)} slots taken by one semaphore"
