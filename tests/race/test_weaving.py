"""Probes stand before each access that threads may share, and change nothing."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from swarmtest.race.primitives.policy import Policy, policy_on, prepare
from swarmtest.race.weaving.sites import SITES
from swarmtest.race.weaving.weaver import weave, woven_tree

Load = Callable[[str], ModuleType]


class Noting(Policy):
    """Notes the accesses."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def access(self, site: int, obj: Any = None) -> Any:
        place = SITES[site]
        self.seen.append(f"{place.kind} {place.variable}")
        return obj


def accesses(text: str, function: str = "test") -> list[str]:
    """What a function of a program does, in the order in which it does it."""
    names: dict[str, Any] = {"__name__": "noted"}
    code = weave(textwrap.dedent(text), "noted.py")
    prepare(names)
    exec(code, names)
    noting = Noting()
    with policy_on(noting):
        names[function]()
    return noting.seen


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("box.n = 1", ["write box.n"]),
        ("box.n += 1", ["read box.n", "write box.n"]),
        ("box.items.append(box.n)", ["read box.items", "call box.items.append", "read box.n"]),
        ("items[0] += 1", ["read items[]", "write items[]"]),
        ("items[box.zero] = 5", ["read box.zero", "write items[]"]),
        ("items[box.zero] += box.n", ["read box.zero", "read items[]", "read box.n"]),
        ("del box.n", ["write box.n"]),
        ("x = 1; y = x + 1; len(str(y))", []),
        ("global total; total += 1", ["read total", "write total"]),
        ("global total; total, other = 1, 2", ["write total"]),
        ("global total; total = total", ["read total", "write total"]),
        ("len(items)", ["read items[]"]),
        ("0 in items", ["read items[]"]),
        ("0 not in box.items", ["read box.items", "read box.items[]"]),
        ("for x in box.items: pass", ["read box.items", "read box.items[]"]),
        ("x = [1]; len(x); 1 in x", []),
        ("LIMIT + 1", []),
        ("math.floor(2.5)", []),
        ("[box.n for _ in range(2)]", ["read box.n", "read box.n"]),
        ("f'{box.n}'", ["read box.n"]),
        ("(lambda: box.n)()", ["read box.n"]),
        ("with lock: pass", []),
    ],
)
def test_what_has_a_probe(statements: str, expected: list[str]) -> None:
    text = f"""
import math
from contextlib import nullcontext
LIMIT = 10
lock = nullcontext()
class Box:
    n = 0
    zero = 0
    def __init__(self):
        self.n = 0
        self.items = []
box = Box()
items = [0, 1]
total = 0
def test():
    {statements}
"""
    seen = accesses(text)
    assert seen[: len(expected)] == expected
    assert expected or not seen


def test_locals_have_a_probe_if_functions_close_over_them() -> None:
    seen = accesses("""
        def test():
            alone = shared = 0
            def change():
                nonlocal shared
                shared += 1
            change()
            alone += 1
            return shared
    """)
    assert seen == ["write shared", "read shared", "write shared", "read shared"]


def test_ones_own_methods_are_no_variables() -> None:
    seen = accesses("""
        class Shop:
            def __init__(self):
                self.left = 1
            def sell(self):
                self.check()
            def check(self):
                return self.left
        def test():
            shop = Shop()
            shop.sell()
    """)
    assert seen == ["write self.left", "call shop.sell", "read self.left"]


def test_a_woven_program_does_what_it_did(load: Load) -> None:
    text = """
        import enum
        from dataclasses import dataclass, field

        class Colour(enum.Enum):
            RED = 1
            BLUE = RED + 1

        @dataclass
        class Point:
            x: int = 0
            seen: list = field(default_factory=list)

            def __add__(self, other):
                return Point(self.x + other.x)

            def __iadd__(self, other):
                self.x += other.x
                return self

        class Child(Point):
            __secret = 3

            def __init__(self, *args):
                super().__init__(*args)
                self.__private = self.__secret

            @property
            def private(self):
                return self.__private

        counter = {"a": [1, 2, 3]}
        both = last = None

        def generate(n):
            for i in range(n):
                if i == 1:
                    continue
                got = yield i
                counter["a"][-1] += got or 0

        def described(value):
            match value:
                case Colour.RED:
                    return "red"
                case Point(x=x) if x > 1:
                    return f"point {x:>3}"
                case {"a": [first, *rest]}:
                    return (first, rest)
                case _:
                    return "other"

        def run():
            global both, last
            out = []
            p = q = Point(1)
            p += Point(2)
            out.append((p is q, p.x, (p + q).x))
            both, *last = 1, 2, 3
            out.append((both, last))
            out.append(Child(7).private)
            out.append([described(v) for v in (Colour.RED, p, counter, 5)])
            out.append(list(generate(4)))
            counter["a"][1:2] = [9, 9]
            counter["a"] += [4]
            out.append(counter["a"])
            del counter["a"][0], last
            try:
                last
            except NameError as error:
                out.append(str(error))
            out.append({k: v for k, v in counter.items() if (n := len(v)) and n > 1})
            while (size := len(counter["a"])) > 3:
                counter["a"].pop()
            else:
                out.append(size)
            out.append([f(2) for f in [lambda n, m=m: n * m for m in (1, 2)]])
            return out
    """
    plain: dict[str, Any] = {"__name__": __name__}
    exec(compile(textwrap.dedent(text), "plain", "exec"), plain)
    expected = repr(plain["run"]())
    program = load(text)
    assert repr(program.run()) == expected
    with_events: dict[str, Any] = {"__name__": __name__}
    prepare(with_events)
    exec(woven_tree(ast.parse(textwrap.dedent(text)), "events.py", events=True), with_events)
    assert repr(with_events["run"]()) == expected


def test_lines_stay_where_they_are(load: Load) -> None:
    program = load("""
        class Box:
            pass

        def test(box):
            box.n = 1
            box.n += (
                box.missing
            )
    """)
    with pytest.raises(AttributeError) as raised:
        program.test(program.Box())
    assert raised.traceback[-1].lineno + 1 == 8
