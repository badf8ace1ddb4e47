"""`pytest --swarm-focus=REV`: machines are aimed at what was changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from swarmtest.store.interface import Store

pytest_plugins = "pytester"
pytestmark = pytest.mark.skipif(
    shutil.which("git") is None, reason="git is not installed: apt-get install git"
)

SHOP = """
    class Cart:
        def __init__(self):
            self.items = {}
            self.coupon = None

        def add(self, name, price):
            self.items[name] = self.items.get(name, 0) + price

        def use(self, coupon):
            self.coupon = coupon

        def clear(self):
            self.items.clear()

        def total(self):
            total = sum(self.items.values())
            if self.coupon and len(self.items) > 4:
                total -= 10
            return total
    """
MACHINE = """
    from swarmtest import Machine, action, integers, sampled_from
    from shop import Cart

    class CartMachine(Machine):
        steps = 20

        def start(self):
            self.cart = Cart()

        @action(name=sampled_from("abcdefgh"), price=integers(1, 9))
        def add(self, name, price):
            self.cart.add(name, price)

        @action
        def use(self):
            self.cart.use("ten")

        @action
        def clear(self):
            self.cart.clear()

        @action
        def total(self):
            self.cart.total()
    """
LAMP = """
    from swarmtest import Machine, action

    class LampMachine(Machine):
        @action
        def switch(self):
            pass
    """

InAProcess = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shop(pytester: pytest.Pytester, write: Callable[..., None]) -> None:
    """A committed shop, whose coupon was changed since."""
    write(shop=SHOP, test_cart=MACHINE, conftest="")
    (pytester.path / ".gitignore").write_text("__pycache__/\n.swarmtest/\n")
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in _WHO}
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "shop"]):
        subprocess.run(
            ["git", *words],
            cwd=pytester.path,
            env={**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull},
            check=True,
        )
    write(shop=SHOP.replace("total -= 10", 'raise ValueError("no coupons")'))


_WHO = ("NAME", "EMAIL")


def test_changed_lines_are_hit_and_a_new_fault_is_told(
    shop: None, in_a_process: InAProcess
) -> None:
    done = in_a_process("--swarm-focus=main", "--swarm-tests=600")
    assert done.returncode == 1
    assert "ValueError: no coupons [Cart.total" in done.stdout
    assert "aimed at changes since main: changed lines: 1; hit 1 (by" in done.stdout
    assert "is new: the base version passes its test" in done.stdout
    assert "--swarm-focus=main" in done.stdout.split("rerun:")[1]


def test_when_all_is_well_the_summary_tells_what_was_hit(
    shop: None, write: Callable[..., None], in_a_process: InAProcess
) -> None:
    write(shop=SHOP.replace("total -= 10", "total -= 11"))
    done = in_a_process("--swarm-focus=main", "--swarm-tests=600")
    assert done.returncode == 0, done.stdout
    assert "test_cart.py::CartMachine: aimed at changes since main: changed lines: 1; hit 1" in (
        done.stdout
    )


def test_a_baseline_tells_what_to_aim_by(
    shop: None,
    write: Callable[..., None],
    in_a_process: InAProcess,
    store: Callable[[], Store],
) -> None:
    write(shop=SHOP.replace("total -= 10", "total -= 11"))
    in_a_process("--swarm-focus=main", "--swarm-tests=1000")
    campaigns = store().campaigns()
    assert campaigns[0].strategy == "coin"
    assert campaigns[1].options["plan"]["directed"]["aims"][0]["triggers"] == [
        "add",
        "total",
        "use",
    ]


def test_a_machine_that_cannot_reach_the_change_is_skipped(
    shop: None, write: Callable[..., None], in_a_process: InAProcess
) -> None:
    write(test_lamp=LAMP)
    done = in_a_process("--swarm-focus=main", "--swarm-tests=300", "-rs", "test_lamp.py")
    assert "1 skipped" in done.stdout, done.stdout
    assert "--swarm-focus: " in done.stdout


def test_an_unknown_revision_is_one_clear_line(shop: None, in_a_process: InAProcess) -> None:
    done = in_a_process("--swarm-focus=mian", "--swarm-tests=100")
    assert done.returncode == 1
    assert "mian" in done.stdout
    assert "did you mean" in done.stdout or "main" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_strategy_cannot_be_chosen_as_well(shop: None, in_a_process: InAProcess) -> None:
    done = in_a_process("--swarm-focus=main", "--swarm-strategy=coin")
    assert "--swarm-focus chooses the configurations: omit --swarm-strategy" in done.stdout
