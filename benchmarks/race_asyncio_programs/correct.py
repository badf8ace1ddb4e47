"""Correct programs of asyncio, of which no run may report a fault."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any


async def locked_counter() -> None:
    """Tasks count under a lock, with an await in between."""
    lock = asyncio.Lock()
    total = 0

    async def add(delay: float) -> None:
        nonlocal total
        await asyncio.sleep(delay)
        async with lock:
            before = total
            await asyncio.sleep(0.001)
            total = before + 1

    await asyncio.gather(*(add(0.001 * n) for n in range(4)))
    assert total == 4


async def queue_and_workers() -> None:
    """Workers take from a queue until they are told to end; a time limit is far away."""
    queue: asyncio.Queue[int | None] = asyncio.Queue(2)
    results: list[int] = []

    async def work() -> None:
        while (item := await queue.get()) is not None:
            await asyncio.sleep(0.001)
            results.append(item)

    async def serve() -> None:
        workers = [asyncio.create_task(work()) for _ in range(3)]
        for item in (*range(6), None, None, None):
            await queue.put(item)
        await asyncio.gather(*workers)

    await asyncio.wait_for(serve(), 3600)
    assert sorted(results) == list(range(6))


async def streams() -> None:
    """A server echoes what its clients send, on real sockets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def ask(number: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{number}\n".encode())
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return answer

    async with server:
        answers = await asyncio.gather(*(ask(n) for n in range(3)))
    assert answers == [b"0\n", b"1\n", b"2\n"]


async def callbacks_in_order() -> None:
    """Plain callbacks run in the order in which they were scheduled."""
    loop = asyncio.get_running_loop()
    log: list[int] = []
    done = loop.create_future()
    for n in range(5):
        loop.call_soon(log.append, n)
    loop.call_later(0.01, log.append, 5)
    loop.call_later(0.02, log.append, 6)
    loop.call_later(0.03, done.set_result, None)
    await asyncio.gather(asyncio.sleep(0), done)
    assert log == [0, 1, 2, 3, 4, 5, 6]


async def cancelled_cleanly() -> None:
    """A cancelled task gives back what it took."""
    free = 1

    async def borrow() -> None:
        nonlocal free
        free -= 1
        try:
            await asyncio.sleep(60)
        finally:
            free += 1

    task = asyncio.create_task(borrow())
    await asyncio.sleep(0.01)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert free == 1


async def threads_and_loop() -> None:
    """Threads of the executor hand results to the loop; a condition is used by tasks."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    results: list[int] = []

    def compute(n: int) -> int:
        loop.call_soon_threadsafe(results.append, n)
        return n * n

    async def wait() -> None:
        await done.wait()

    waiter = asyncio.create_task(wait())
    squares = await asyncio.gather(*(asyncio.to_thread(compute, n) for n in range(3)))
    done.set()
    await waiter
    assert squares == [0, 1, 4]
    assert sorted(results) == [0, 1, 2]


PROGRAMS: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
    program.__name__: program
    for program in (
        locked_counter,
        queue_and_workers,
        streams,
        callbacks_in_order,
        cancelled_cleanly,
        threads_and_loop,
    )
}
