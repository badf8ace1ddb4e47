"""Programs to make suites of, and commands to make them with, as a user would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_processes import WITHOUT_OTHERS

CART = """
class Cart:
    def __init__(self):
        self.items = {}
        self.coupon = 0

    def add(self, name, count):
        if count < 1:
            raise ValueError("count is at least 1")
        self.items[name] = self.items.get(name, 0) + count

    def remove(self, name):
        if name not in self.items:
            return False
        del self.items[name]
        return True

    def redeem(self, percent):
        self.coupon = max(self.coupon, percent)

    def total(self):
        total = 3 * sum(self.items.values())
        if self.coupon and len(self.items) == 3:
            total = -1  # the bug
        return total
"""
SHOP = """
from cart import Cart

from swarmtest import Machine, action, integers, invariant, sampled_from


class Shop(Machine):
    steps = 25

    def start(self):
        self.cart = Cart()

    @action(name=sampled_from(["tea", "milk", "jam"]), count=integers(-1, 3), raises=ValueError)
    def add(self, name, count):
        self.cart.add(name, count)

    @action(name=sampled_from(["tea", "milk", "jam"]))
    def remove(self, name):
        if not self.cart.remove(name):
            self.event("was not there")

    @action(percent=integers(1, 50))
    def redeem(self, percent):
        self.cart.redeem(percent)

    @action
    def total(self):
        assert self.cart.total() >= 0, "negative total"

    @invariant
    def nothing_is_negative(self):
        assert all(count > 0 for count in self.cart.items.values())
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


class Workplace:
    """A directory with a project in it."""

    def __init__(self, path: Path, command: Run) -> None:
        self.path = path
        self.command = command
        (path / "tests").mkdir()

    def write(self, name: str, text: str) -> Path:
        (self.path / name).write_text(text)
        return self.path / name

    def swarmtest(self, *words: str, status: int = 0) -> str:
        """What a command prints; for one that is to fail, what it says on standard error."""
        done = self.command(*words, cwd=self.path, PYTEST_ADDOPTS=" ".join(WITHOUT_OTHERS))
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr.strip() if status else done.stdout

    def run(self, *words: str) -> None:
        """A campaign; faults are what some are for."""
        done = self.command("run", *words, "-q", cwd=self.path)
        assert done.returncode in (0, 1), done.stdout + done.stderr

    def pytest(self, *words: str) -> tuple[int, str]:
        """How a run of pytest ends, and what it prints."""
        plugin = ["-p", "no:cacheprovider", "-p", "no:swarmtest.pytest_plugin"]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pytest", *WITHOUT_OTHERS, "-q", *plugin, *words],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout


@pytest.fixture
def workplace(tmp_path: Path, swarmtest: Run) -> Workplace:
    """An empty project."""
    return Workplace(tmp_path, swarmtest)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, swarmtest: Run) -> Workplace:
    """A project with a campaign of a machine that has a bug, with coverage and mutants."""
    made = Workplace(tmp_path_factory.mktemp("shop"), swarmtest)
    made.write("cart.py", CART)
    made.write("shop.py", SHOP)
    made.run("shop.py", "--tests", "200", "--coverage", "line,branch", "--seed", "1")
    words = ("mutate", "--operators", "relational", "--tests", "40")
    done = swarmtest(*words, cwd=made.path)
    assert done.returncode in (0, 1), done.stderr
    return made
