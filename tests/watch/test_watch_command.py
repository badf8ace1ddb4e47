"""`swarmtest watch` with a real repository, real commits and real processes."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_repository import Repository, needs_git, repository  # noqa: F401

from swarmtest.store import open_store
from swarmtest.store.fault_lives import fault_lives

pytestmark = needs_git

Start = Callable[..., subprocess.Popen[str]]
SHOP = """\
class Shop:
    def __init__(self):
        self.stock = 0
        self.sold = 0

    def buy(self, n):
        self.stock += n

    def sell(self):
        if self.stock:
            self.stock -= 1
            self.sold += 1
"""
WRONG = SHOP.replace("if self.stock:", "if self.stock or self.sold > 2:")
BROKEN = SHOP.replace("class Shop:", "class Shop")
MACHINE = """\
from swarmtest import Machine, action, integers, invariant
from shop import Shop


class ShopMachine(Machine):
    def start(self):
        self.shop = Shop()

    @action(n=integers(1, 3))
    def buy(self, n):
        self.shop.buy(n)

    @action
    def sell(self):
        self.shop.sell()

    @invariant
    def stock_is_never_negative(self):
        return self.shop.stock >= 0
"""
SHORT = ("--slice", "0.5s", "--focus-time", "0.5s")
SUBJECT = "machine.py::ShopMachine"


class Log:
    """The lines that a watch prints, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[str] = []
        self._coming: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._coming.put(line.rstrip("\n"))

    def wait_for(self, pattern: str) -> str:
        """Return the next line that matches, and forget those before it."""
        deadline = time.monotonic() + 180.0
        while True:
            try:
                line = self._coming.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                pytest.fail(f"no line {pattern!r} after {self.seen}")
            self.seen.append(line)
            if re.search(pattern, line):
                return line


@pytest.fixture
def shop(repository: Repository) -> Repository:  # noqa: F811
    repository.write(".gitignore", "__pycache__/\n.swarmtest/\n*.db\n")
    repository.write("machine.py", MACHINE)
    repository.write("shop.py", SHOP)
    repository.commit("A shop")
    return repository


@pytest.fixture
def watch(start: Start, shop: Repository) -> Callable[..., Log]:
    """Begin to watch the shop."""
    return lambda *words: Log(start("watch", "machine.py", *SHORT, *words, cwd=shop.place))


def put(shop: Repository, text: str, message: str) -> str:
    """Commit another version of the shop, and return the beginning of its hash."""
    shop.write("shop.py", text)
    return shop.commit(message)[:12]


def test_a_fault_is_new_then_fixed_then_back_again(
    shop: Repository, watch: Callable[..., Log], family: Callable[..., list[int]]
) -> None:
    log = watch()
    log.wait_for(r"^\d\d:\d\d:\d\d watching machine.py at commit \w+ A shop: commits$")
    log.wait_for(r"campaign 1 \(layered\): [\d,]+ tests")
    put(shop, WRONG, "Sell more")
    # A campaign that begins between saving the file and the commit may be the first to see it.
    id = log.wait_for("new fault").split()[3].rstrip(":")
    log.wait_for(r"focus on the difference to \w{12}: [\d,]+ tests")
    fixing = put(shop, SHOP, "Do not oversell")
    log.wait_for(f"fault {id} is fixed in {fixing} .its test passed 3 times.$")
    put(shop, BROKEN, "Oops")
    log.wait_for(r"cannot be tested \(\w+ Oops\): cannot import .*expected ':'; waiting")
    put(shop, SHOP, "Mend the syntax")
    log.wait_for(r"campaign \d+ ")
    put(shop, WRONG, "Sell more, again")
    log.wait_for(f"fault {id} is (seen again: )?back again in .*; it was fixed in {fixing}$")
    log.wait_for("commit .* Sell more, again$|focus on the difference")
    log.process.send_signal(signal.SIGINT)
    log.wait_for("interrupted: .* 1 fault new, 1 fault fixed, 1 fault back again$")
    assert log.process.wait(60) == 130
    assert family(log.process) == []
    assert [line.split()[3] for line in log.seen if "new fault" in line] == [f"{id}:"]
    assert any(re.search("commit .* Sell more$", line) for line in log.seen)
    with open_store(".swarmtest/swarmtest.db") as store:
        life = fault_lives(store, SUBJECT)[id]
    assert (life.state, life.flaky) == ("back again", False)
    assert len(life.versions) > 1


def test_a_watch_that_was_killed_leaves_nothing_and_goes_on(
    shop: Repository,
    watch: Callable[..., Log],
    family: Callable[..., list[int]],
    until: Callable[..., object],
) -> None:
    log = watch("-s", "coin", "--coverage", "none")
    log.wait_for(r"campaign 1 \(coin\)")
    os.kill(log.process.pid, signal.SIGKILL)
    log.process.wait()
    until(lambda: not family(log.process), "all processes of the watch have ended")
    with open_store(".swarmtest/swarmtest.db") as store:
        tests = store.summary(1)["trials"]
    again = watch("-s", "coin", "--coverage", "none")
    assert "campaign 1 (coin): " in again.wait_for(r"campaign \d+ .*: [1-9][\d,]* tests?, ")
    again.process.send_signal(signal.SIGINT)
    assert again.process.wait(60) == 130
    with open_store(".swarmtest/swarmtest.db") as store:
        assert [record.id for record in store.campaigns()] == [1]
        assert store.summary(1)["trials"] > tests


def test_saved_files_are_enough_with_on_save(shop: Repository, watch: Callable[..., Log]) -> None:
    log = watch("--on-save", "-s", "coin", "--time", "60s")
    log.wait_for(r"campaign 1 \(coin\)")
    shop.write("shop.py", WRONG)
    log.wait_for("saved: shop.py$")
    id = log.wait_for("new fault").split()[3].rstrip(":")
    shop.write("shop.py", SHOP + "\n# fixed\n")
    log.wait_for(rf"fault {id} is fixed in \w+\+changes ")
    log.process.send_signal(signal.SIGTERM)
    assert log.process.wait(60) == 130


def test_the_exit_status_tells_of_new_faults(
    shop: Repository, swarmtest: Callable[..., Any]
) -> None:
    put(shop, WRONG, "Sell more")
    words = ("watch", "machine.py", *SHORT, "-s", "coin", "--coverage", "none", "--time", "1s")
    done = [swarmtest(*words, cwd=shop.place), swarmtest(*words, cwd=shop.place)]
    assert [each.returncode for each in done] == [1, 0], [each.stdout for each in done]
    assert "still there" in done[1].stdout
    any_fault = swarmtest(*words, "--fail-on", "any", cwd=shop.place)
    assert any_fault.returncode == 1


def test_a_program_that_could_not_be_tested_is_no_success(
    shop: Repository, swarmtest: Callable[..., Any], refused: Callable[..., str]
) -> None:
    put(shop, BROKEN, "Oops")
    done = swarmtest("watch", "machine.py", *SHORT, "--time", "1s", cwd=shop.place)
    refused(done, "nothing was tested")
    assert "cannot be tested" in done.stdout


def test_the_dashboard_runs_meanwhile_and_ends_with_the_watch(
    watch: Callable[..., Log], family: Callable[..., list[int]]
) -> None:
    log = watch("--dashboard", "-s", "coin", "--coverage", "none", "--time", "2s")
    assert "http://127.0.0.1:" in log.wait_for("dashboard: ")
    log.wait_for("time is up")
    assert log.process.wait(60) == 0
    assert family(log.process) == []


def test_bad_input_gets_one_line(
    tmp_path: Path, swarmtest: Callable[..., Any], refused: Callable[..., str]
) -> None:
    (tmp_path / "machine.py").write_text("")
    refused(swarmtest("watch", "machine.py", cwd=tmp_path), "in no git repository", "--on-save")
    refused(swarmtest("watch", "machine.py", "--slice", "x", cwd=tmp_path), "'x'")
    refused(swarmtest("watch", "machine.py", "-s", "nothing", cwd=tmp_path), "nothing")
    refused(swarmtest("watch", "machine.py", "--coverage", "lime", cwd=tmp_path), "lime")
