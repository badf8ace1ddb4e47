"""`pytest --race`: tests that start threads are run again under many schedules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest_plugins = "pytester"

SHOP = """
    class Shop:
        def __init__(self, seats):
            self.seats = seats

        def sell(self):
            if self.seats > 0:
                self.seats -= 1
    """
SUITE = """
    import threading
    import pytest
    from shop import Shop

    @pytest.fixture
    def shop():
        return Shop(SEATS)

    def test_one_seller(shop):
        shop.sell()
        assert shop.seats == SEATS - 1

    def test_two_sellers(shop):
        sellers = [threading.Thread(target=shop.sell) for _ in range(2)]
        for seller in sellers:
            seller.start()
        for seller in sellers:
            seller.join()
        assert shop.seats >= 0
    """


def test_a_race_fails_its_test_with_the_timeline(write: Callable[..., None], in_a_process) -> None:
    write(shop=SHOP, test_shop=SUITE.replace("SEATS", "1"))
    plain = in_a_process()
    assert "2 passed" in plain.stdout
    done = in_a_process("--race")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "a race in run" in done.stdout
    assert done.stdout.count("reads self.seats: 1") >= 2
    assert "AssertionError: assert -1 >= 0" in done.stdout  # asserts tell what they compared
    assert "swarmtest: raced 1 test with threads" in done.stdout
    assert "replay: swarmtest replay .swarmtest" in done.stdout


def test_a_failure_that_does_not_come_again_is_a_failure(
    write: Callable[..., None], in_a_process
) -> None:
    write(
        test_fifth="""
        import threading

        runs = []

        def test_it():
            thread = threading.Thread(target=runs.append, args=(1,))
            thread.start()
            thread.join()
            assert len(runs) != 5
        """
    )
    done = in_a_process("--race")
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    assert "AssertionError [test_it: assert len(runs) != 5]\nnot explained: " in done.stdout
    assert "passes: nothing to explain" in done.stdout


def test_a_suite_without_races_passes(write: Callable[..., None], in_a_process) -> None:
    write(shop=SHOP, test_shop=SUITE.replace("SEATS", "9"))
    done = in_a_process("--race", "--race-tests", "20")
    assert "2 passed" in done.stdout
    assert "raced 1 test with threads: 20 runs" in done.stdout


def test_a_test_that_fails_anyway_fails_as_always(write: Callable[..., None], in_a_process) -> None:
    write(shop=SHOP, test_shop="def test_it():\n    number = 3\n    assert number == 4\n")
    done = in_a_process("--race")
    assert "assert 3 == 4" in done.stdout
    assert "raced 0 tests" in done.stdout


def test_a_test_that_blocks_outside_of_probes_is_named(
    write: Callable[..., None], in_a_process
) -> None:
    write(
        test_pipe="""
        import os, threading

        def test_pipe():
            read, write = os.pipe()
            file = open(read, "rb", 0)  # its methods are C code
            thread = threading.Thread(target=file.read, args=(1,))
            thread.start()
            os.write(write, b"x")
            thread.join()
            os.close(write)
            file.close()
        """
    )
    done = in_a_process("--race", "--race-tests", "20", "--race-time", "1s")
    assert "1 passed" in done.stdout
    assert "it waits where there are no probes" in done.stdout


@pytest.mark.parametrize("option", ["--race-time=soon", "--race-tests=many"])
def test_options_that_make_no_sense_are_refused(
    write: Callable[..., None], in_a_process, option: str
) -> None:
    write(test_shop="def test_it(): pass")
    done = in_a_process("--race", option)
    assert done.returncode == 4
    assert "--race:" in done.stderr


def test_tasks_of_asyncio_are_raced(write: Callable[..., None], in_a_process) -> None:
    write(
        test_pages="""
    import asyncio

    async def main():
        log = []
        async def enter(n):
            log.append(n)
        await asyncio.gather(enter(0), enter(1))
        assert log == [0, 1]

    def test_order():
        asyncio.run(main())
    """
    )
    assert "1 passed" in in_a_process().stdout
    done = in_a_process("--race")
    assert "a race in run" in done.stdout
    assert "another order than asyncio's" in done.stdout


def test_each_parametrisation_has_a_replay_file_of_its_own(
    write: Callable[..., None], in_a_process, pytester: pytest.Pytester
) -> None:
    two = SUITE.replace("SEATS", "1").replace(
        "def test_two_sellers(shop):",
        "@pytest.mark.parametrize('n', ['a/b', 'a b'])\n    def test_two_sellers(shop, n):",
    )
    write(shop=SHOP, test_shop=two)
    done = in_a_process("--race")
    assert "2 failed" in done.stdout
    assert len(list((pytester.path / ".swarmtest" / "races").glob("*.json"))) == 2
