"""A service that hands out connections, and clients that ask for them at the same time."""

import asyncio


class Service:
    """The program under test: a pool of at most two connections."""

    most = 2

    def __init__(self):
        self.in_use = 0
        self.worst = 0

    async def connect(self):
        await asyncio.sleep(0)  # stands for the network
        self.in_use += 1
        self.worst = max(self.worst, self.in_use)

    async def serve(self):
        while self.in_use >= self.most:
            await asyncio.sleep(0)
        await self.connect()  # the bug: others may connect in the meantime
        await asyncio.sleep(0)
        self.in_use -= 1


async def clients():
    service = Service()
    await asyncio.gather(*(service.serve() for _ in range(3)))
    assert service.worst <= service.most, "too many connections"


def three_clients():
    asyncio.run(clients())
