"""`swarmtest mutate`: small changes to the program, and whether its tests notice."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
ACCOUNT = """
class Account:
    def __init__(self):
        self.balance = 0

    def pay_in(self, amount):
        self.balance += amount

    def spare(self):
        return 17
"""
BANK = """
from account import Account
from swarmtest import Machine, action, integers, invariant

class Bank(Machine):
    steps = 10
    def start(self):
        self.account, self.expected = Account(), 0
    @action(amount=integers(1, 9))
    def pay_in(self, amount):
        self.account.pay_in(amount)
        self.expected += amount
    @action
    def look(self):
        self.account.balance
    @invariant
    def balance_is_right(self):
        assert self.account.balance == self.expected
"""


@pytest.fixture
def bank(tmp_path: Path, swarmtest: Run) -> Path:
    (tmp_path / "account.py").write_text(ACCOUNT)
    (tmp_path / "bank.py").write_text(BANK)
    done = swarmtest("run", "bank.py", "-n", 60, "-s", "coin", "--coverage", "line", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_what_tests_check_is_killed_and_what_they_never_run_is_not_reached(
    swarmtest: Run, bank: Path
) -> None:
    done = swarmtest("mutate", "--json", cwd=bank)
    told = json.loads(done.stdout)
    assert done.returncode == 0
    by_function = {one["function"]: one for one in told["mutants"]}
    assert by_function["Account.pay_in"]["killed_by"]
    assert not by_function["Account.spare"]["reached"]
    assert told["minimal_tests"]


def test_killed_mutants_are_targets_with_roles(swarmtest: Run, bank: Path) -> None:
    swarmtest("mutate", "--operators", "augmented", cwd=bank)
    done = swarmtest("roles", "--kind", "mutant", "--json", cwd=bank)
    first = json.loads(done.stdout.splitlines()[0])
    assert first["target"].startswith("mutant:account.py:7 ")
    roles = {role["feature"]: role["role"] for role in first["roles"]}
    assert roles["pay_in"] == "trigger"


def test_a_focus_on_a_mutant_says_who_counts_kills(swarmtest: Run, bank: Path) -> None:
    swarmtest("mutate", "--operators", "augmented", cwd=bank)
    told = json.loads(swarmtest("mutate", "--operators", "augmented", "--json", cwd=bank).stdout)
    mutant = told["mutants"][0]["id"]
    done = swarmtest("focus", "bank.py", "--mutant", mutant, "-n", 50, "--hot", 1, cwd=bank)
    assert "which mutants these tests kill: swarmtest mutate --campaign 2" in done.stdout


def test_survivors_are_shown_with_their_diff(swarmtest: Run, bank: Path) -> None:
    (bank / "bank.py").write_text(BANK.replace("assert self", "assert True or self"))
    swarmtest("run", "bank.py", "-n", 60, "-s", "coin", "--coverage", "line", cwd=bank)
    done = swarmtest("mutate", "--operators", "augmented", cwd=bank)
    assert done.returncode == 1
    assert "-        self.balance += amount\n" in done.stdout
    assert "+        self.balance -= amount\n" in done.stdout


def test_a_sample_has_an_interval(swarmtest: Run, bank: Path) -> None:
    done = swarmtest("mutate", "--sample", 3, "--json", cwd=bank)
    told = json.loads(done.stdout)
    low, high = told["interval"]
    assert len(told["mutants"]) == 3 < told["population"]
    assert low < told["score"] < high or told["score"] in (0, 1)


def test_only_some_lines(swarmtest: Run, bank: Path) -> None:
    told = json.loads(swarmtest("mutate", "--lines", "account.py:6-7", "--json", cwd=bank).stdout)
    assert {one["line"] for one in told["mutants"]} == {7}


def test_a_pytest_suite_kills_too(swarmtest: Run, bank: Path) -> None:
    (bank / "test_account.py").write_text(
        "from account import Account\n"
        "def test_pay_in():\n"
        "    account = Account()\n"
        "    account.pay_in(5)\n"
        "    assert account.balance == 5\n"
    )
    done = swarmtest("mutate", "account.py", "--pytest", "test_account.py", "--json", cwd=bank)
    told = json.loads(done.stdout)
    assert told["tests"] == ["test_account.py::test_pay_in"]
    assert any(one["killed_by"] for one in told["mutants"])


def test_what_runs_at_import_is_mutated_too(swarmtest: Run, bank: Path) -> None:
    (bank / "account.py").write_text("FEE = 4 - 4\n" + ACCOUNT.replace("= 0", "= FEE"))
    told = json.loads(swarmtest("mutate", "account.py", "--json", cwd=bank).stdout)
    assert told["not_switchable"] == []
    assert {one["line"]: len(one["killed_by"]) for one in told["mutants"]}[1] == 60


def test_a_process_for_each_mutant_gives_the_same_verdicts(swarmtest: Run, bank: Path) -> None:
    usual, alone = (
        json.loads(swarmtest("mutate", "account.py", "--json", *more, cwd=bank).stdout)
        for more in ([], ["--isolate"])
    )
    assert usual["mutants"] == alone["mutants"]


def test_the_matrix_can_be_written(swarmtest: Run, bank: Path) -> None:
    swarmtest("mutate", "-o", "matrix.csv", cwd=bank)
    head, *rows = list(csv.reader((bank / "matrix.csv").read_text().splitlines()))
    assert head[:4] == ["mutant", "file", "line", "operator"]
    assert all(set(row[4:]) <= {"0", "1"} for row in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.py"], ["nothing.py", "no such file"]),
        (["--operators", "arithmetik"], ["arithmetik", "arithmetic"]),
        (["--sample", "0"], ["--sample 0"]),
        (["--tests", "0"], ["--tests 0", "at least one test"]),
        (["--campaign", "9"], ["9"]),
        (["--lines", "account.py:99-100"], ["account.py"]),
        (["-o", "no/such/matrix.csv"], ["no/such/matrix.csv"]),
    ],
)
def test_bad_input_gets_one_clear_line(
    swarmtest: Run, bank: Path, refused: Callable[..., str], arguments: list[str], words: list[str]
) -> None:
    refused(swarmtest("mutate", *arguments, cwd=bank), *words)


def test_no_file_is_changed(swarmtest: Run, bank: Path) -> None:
    before = {file: file.read_bytes() for file in bank.glob("*.py")}
    swarmtest("mutate", cwd=bank)
    assert {file: file.read_bytes() for file in bank.glob("*.py")} == before


def test_by_default_what_the_machine_imports_is_mutated_and_told(
    swarmtest: Run, bank: Path
) -> None:
    swarmtest("run", "bank.py", "-n", 20, cwd=bank)  # without coverage
    done = swarmtest("mutate", cwd=bank)
    assert "\nmutated: account.py\n" in done.stdout
    told = json.loads(swarmtest("mutate", "--json", cwd=bank).stdout)
    assert told["files"] == ["account.py"]


@pytest.mark.parametrize("coverage", [(), ("--coverage", "line")])
def test_a_machine_beside_its_program_is_not_mutated(
    swarmtest: Run, tmp_path: Path, coverage: tuple[str, ...]
) -> None:
    machine = BANK.replace("from account import Account\n", "")
    (tmp_path / "whole.py").write_text(ACCOUNT + machine)
    swarmtest("run", "whole.py", "-n", 20, *coverage, cwd=tmp_path)
    told = json.loads(swarmtest("mutate", "--json", cwd=tmp_path).stdout)
    assert {mutant["function"].partition(".")[0] for mutant in told["mutants"]} == {"Account"}
    named = json.loads(swarmtest("mutate", "whole.py", "--json", cwd=tmp_path).stdout)
    assert "Bank" in {mutant["function"].partition(".")[0] for mutant in named["mutants"]}


def test_a_file_that_has_only_a_machine_gives_nothing_to_mutate(
    swarmtest: Run, tmp_path: Path
) -> None:
    (tmp_path / "alone.py").write_text(
        "from swarmtest import Machine, action\n"
        "class Alone(Machine):\n    @action\n    def go(self):\n        self.done = 1 + 1\n"
    )
    swarmtest("run", "alone.py", "-n", 20, cwd=tmp_path)
    done = swarmtest("mutate", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "swarmtest: alone.py: nothing to mutate besides the machine itself: name the files of the "
        "program\n"
    )
