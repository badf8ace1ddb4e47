"""pyee, changelog of 8.1.0: "Improve thread safety in base EventEmitter"."""

import threading

from pyee import BaseEventEmitter


def program():
    emitter, calls = BaseEventEmitter(), []
    emitter.once("ready", lambda: calls.append(1))
    threads = [threading.Thread(target=emitter.emit, args=("ready",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1], calls
