"""A program of 60 operations with 36 faults, and its machine: what `benchmarks/million.py` tests.

The source is made up from a fixed seed, so that it is the same everywhere. An operation is a tree
of conditions about its argument, how often it was called, and which other operations were called
before it. So most lines and branches have triggers, some have suppressors, and how often they are
hit ranges from every test to one in a hundred thousand. A fault needs one other operation, is
prevented by a second, and needs luck: one argument in 3 for the most frequent, one in 3,000 for the
rarest.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

OPERATIONS = 60
FAULTS = 36
STEPS = 30
_CONDITIONS = 17
"""Conditions of an operation; a condition has two branches, and about two and a half lines."""
_MOST = 99_999
_FREQUENT, _RARE = 3, 3_000
"""One argument in so many shows the most frequent fault, and the rarest."""

_LIBRARY = '''"""A library that was made up."""


class Library:
    def __init__(self):
        self.calls = [0] * {operations}
        self.total = 0
'''
_MACHINE = '''"""The machine of a library that was made up."""

from library import Library

from swarmtest import Machine, action, integers


class Calls(Machine):
    steps = {steps}

    def start(self):
        self.library = Library()
'''
_ACTION = """
    @action(x=integers(0, {most}))
    def {name}(self, x):
        self.library.{name}(x)
"""


def write_program(directory: Path) -> Path:
    """Write the library and its machine; return the file of the machine."""
    random = Random(7)
    operations = "".join(_operation(random, number) for number in range(OPERATIONS))
    library = _LIBRARY.format(operations=OPERATIONS) + operations
    actions = [_ACTION.format(name=_name(number), most=_MOST) for number in range(OPERATIONS)]
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "library.py").write_text(library)
    machine = directory / "machine.py"
    machine.write_text(_MACHINE.format(steps=STEPS) + "".join(actions))
    return machine


def _name(number: int) -> str:
    return f"op{number:02}"


def _operation(random: Random, number: int) -> str:
    lines = [
        "",
        f"    def {_name(number)}(self, x):",
        "        calls = self.calls",
        f"        calls[{number}] += 1",
        *_fault(random, number),
        *_conditions(random, number, _CONDITIONS, 8),
        "        self.total += 1",
    ]
    return "\n".join(lines) + "\n"


def _fault(random: Random, number: int) -> list[str]:
    if number >= FAULTS:
        return []
    rarity = round(_FREQUENT * (_RARE / _FREQUENT) ** (number / (FAULTS - 1)))
    needed, preventing = random.sample([n for n in range(OPERATIONS) if n != number], 2)
    luck = f"x % {rarity} == {random.randrange(rarity)}"
    return [
        f"        if {luck} and calls[{needed}] > 1 and not calls[{preventing}]:",
        f'            raise RuntimeError("fault {number}")',
    ]


def _conditions(random: Random, number: int, count: int, indent: int) -> list[str]:
    """Return so many conditions, of which about every second is inside another one."""
    lines = []
    while count:
        inside = min(random.choice((0, 0, 1, 2, 4)), count - 1)
        lines.append(f"{'':{indent}}if {_condition(random, number)}:")
        body = random.choice((1, 1, 2))
        lines += [f"{'':{indent + 4}}self.total += {random.randrange(1, 10)}"] * body
        lines += _conditions(random, number, inside, indent + 4)
        count -= 1 + inside
    return lines


def _condition(random: Random, number: int) -> str:
    other = random.choice([n for n in range(OPERATIONS) if n != number])
    return random.choice(
        (
            f"x < {round(10 ** random.uniform(2, 5))}",
            f"x % {random.choice((2, 3, 7, 50))} == 0",
            f"calls[{other}]",
            f"not calls[{other}]",
            f"calls[{other}] > 1",
            f"calls[{number}] > {random.choice((1, 2, 3))}",
        )
    )
