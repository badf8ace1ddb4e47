"""redis-py, pull request 2719: "Fix potential race condition during disconnection" (4.5.5)."""

import socket
import threading

from redis.connection import Connection

LISTENING = socket.create_server(("127.0.0.1", 0), backlog=100)


def program():
    connection = Connection(port=LISTENING.getsockname()[1])
    connection.connect()
    accepted, _ = LISTENING.accept()
    threads = [threading.Thread(target=connection.disconnect) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accepted.close()
    assert connection._sock is None
