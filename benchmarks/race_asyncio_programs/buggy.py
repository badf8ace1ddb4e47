"""Ten small programs of asyncio with a bug each that plain runs hardly show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


async def check_then_await_then_act() -> None:
    """Two tasks see that a page is missing, and both fetch it."""
    cache: dict[str, int] = {}
    fetched: list[str] = []

    async def get(delay: float) -> None:
        await asyncio.sleep(delay)
        if "page" not in cache:
            await asyncio.sleep(0.001)
            fetched.append("page")
            cache["page"] = 1

    await asyncio.gather(get(0.01), get(0.02))
    assert len(fetched) == 1


async def stale_read() -> None:
    """A balance that was read before an await is written back after it."""
    account = {"balance": 10}

    async def withdraw(delay: float) -> None:
        await asyncio.sleep(delay)
        before = account["balance"]
        await asyncio.sleep(0.005)
        account["balance"] = before - 1

    await asyncio.gather(withdraw(0.01), withdraw(0.02))
    assert account["balance"] == 8


async def order_by_sleeping() -> None:
    """A consumer waits "long enough" for its producer."""
    items: list[int] = []

    async def produce() -> None:
        for n in range(3):
            await asyncio.sleep(0.01)
            items.append(n)

    async def consume() -> None:
        await asyncio.sleep(0.05)
        assert items == [0, 1, 2]

    await asyncio.gather(produce(), consume())


async def iteration_across_await() -> None:
    """A set of clients changes while a broadcast awaits each of them."""
    clients = {1, 2}

    async def broadcast() -> None:
        await asyncio.sleep(0.01)
        for _ in clients:
            await asyncio.sleep(0.001)

    async def join() -> None:
        await asyncio.sleep(0.03)
        clients.add(3)

    await asyncio.gather(broadcast(), join())


async def opposite_locks() -> None:
    """Two tasks take two locks in opposite order."""
    left, right = asyncio.Lock(), asyncio.Lock()

    async def move(first: asyncio.Lock, second: asyncio.Lock, delay: float) -> None:
        await asyncio.sleep(delay)
        async with first:
            await asyncio.sleep(0.001)
            async with second:
                pass

    await asyncio.gather(move(left, right, 0.01), move(right, left, 0.02))


async def missed_event() -> None:
    """A waiter clears an event that was set just before, and waits forever."""
    event = asyncio.Event()

    async def wait() -> None:
        await asyncio.sleep(0.01)
        event.clear()
        await event.wait()

    async def wake() -> None:
        await asyncio.sleep(0.02)
        event.set()

    await asyncio.gather(wait(), wake())


async def first_result_wins() -> None:
    """The quicker of two mirrors is expected to be always the same."""

    async def mirror(name: str, delay: float) -> str:
        await asyncio.sleep(delay)
        return name

    tasks = [asyncio.create_task(mirror("near", 0.01)), asyncio.create_task(mirror("far", 0.02))]
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    assert {task.result() for task in done} == {"near"}


async def cancelled_in_between() -> None:
    """A time limit cancels a transfer after its first half."""
    account = {"from": 1, "to": 0}

    async def transfer() -> None:
        account["from"] -= 1
        await asyncio.sleep(0.01)
        account["to"] += 1

    async def request() -> None:
        task = asyncio.create_task(transfer())
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.wait([task])

    await request()
    assert account["from"] + account["to"] == 1


async def ready_in_order() -> None:
    """Two tasks that become ready together are expected to run in the order of their creation."""
    log: list[int] = []
    gate = asyncio.Event()

    async def enter(number: int) -> None:
        await gate.wait()
        log.append(number)

    tasks = [asyncio.create_task(enter(n)) for n in range(3)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*tasks)
    assert log == [0, 1, 2]


async def result_of_a_thread() -> None:
    """Two threads of the default executor count without a lock."""
    total = 0

    def add() -> None:
        nonlocal total
        before = total
        total = before + 1

    await asyncio.gather(asyncio.to_thread(add), asyncio.to_thread(add))
    assert total == 2


PROGRAMS: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
    program.__name__: program
    for program in (
        check_then_await_then_act,
        stale_read,
        order_by_sleeping,
        iteration_across_await,
        opposite_locks,
        missed_event,
        first_result_wins,
        cancelled_in_between,
        ready_in_order,
        result_of_a_thread,
    )
}
