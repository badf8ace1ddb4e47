"""Random small programs that always end: every loop pays for each round from one purse."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

_PRELUDE = '''\
from contextlib import suppress

class Stop(Exception):
    """When the purse is empty."""

class A(Exception):
    pass

class B(Exception):
    pass

def pay():
    purse[0] -= 1
    if purse[0] < 0:
        raise Stop
    return True

def choose(n):
    if not choices:
        return 0
    return choices.pop() % n

def fail():
    kind = choose(4)
    if kind == 1:
        raise A
    if kind == 2:
        raise B
    return kind

class Odd:
    def __init__(self, way):
        self.way = way
    def __enter__(self):
        if self.way == 1:
            raise A
        return self
    def __exit__(self, *error):
        if self.way == 2:
            raise B
        return self.way == 3

'''
_ENTRY = """
def run(given):
    global purse, choices
    purse = [40]
    choices = list(given)
    return [work(0), work(1)]
"""


@dataclass
class _Writer:
    draw: st.DrawFn
    left: int
    lines: list[str] = field(default_factory=list)

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def suite(self, depth: int, loop: bool, function: bool = True) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(depth, loop)

    def statement(self, depth: int, loop: bool) -> None:
        self.left -= 1
        simple = ["note", "note", "fail", "pass", "return", "raise", "nested"]
        simple += ["break", "continue"] if loop else []
        compound = ["if", "ifelse", "while", "for", "try", "finally", "with", "match", "endless"]
        wanted = simple if self.left <= 0 or depth > 5 else simple + compound * 2
        getattr(self, f"_{self.draw(st.sampled_from(wanted))}")(depth, loop)

    def _note(self, depth: int, loop: bool) -> None:
        self.put(depth, "x += choose(3)")

    def _fail(self, depth: int, loop: bool) -> None:
        self.put(depth, self.draw(st.sampled_from(["fail()", "x = (", "assert choose(4) != 1"])))
        if self.lines[-1].endswith("("):
            self.put(depth + 1, "x +")
            self.put(depth + 1, "fail()")
            self.put(depth, ")")

    def _pass(self, depth: int, loop: bool) -> None:
        self.put(depth, "pass")

    def _return(self, depth: int, loop: bool) -> None:
        self.put(depth, self.draw(st.sampled_from(["return", "return x", "return fail()"])))

    def _raise(self, depth: int, loop: bool) -> None:
        self.put(depth, self.draw(st.sampled_from(["raise A", "raise B", "raise"])))

    def _nested(self, depth: int, loop: bool) -> None:
        self.put(depth, "def inner(y=fail()):")
        self.put(depth + 1, "return choose(2) + y")
        self.put(depth, "inner()")

    def _break(self, depth: int, loop: bool) -> None:
        self.put(depth, "break")

    def _continue(self, depth: int, loop: bool) -> None:
        self.put(depth, "continue")

    def _test(self) -> str:
        tests = ["choose(2)", "fail()", "x > 2 and choose(2)", "not (choose(2) or fail())"]
        return self.draw(st.sampled_from(tests))

    def _if(self, depth: int, loop: bool) -> None:
        self.put(depth, f"if {self._test()}:")
        self.suite(depth + 1, loop)

    def _ifelse(self, depth: int, loop: bool) -> None:
        self._if(depth, loop)
        if self.draw(st.booleans()):
            self.put(depth, f"elif {self._test()}:")
            self.suite(depth + 1, loop)
        self.put(depth, "else:")
        self.suite(depth + 1, loop)

    def _loop(self, depth: int, loop: bool, header: str) -> None:
        self.put(depth, header)
        self.suite(depth + 1, True)
        if self.draw(st.booleans()):
            self.put(depth, "else:")
            self.suite(depth + 1, loop)

    def _while(self, depth: int, loop: bool) -> None:
        self._loop(depth, loop, f"while pay() and ({self._test()}):")

    def _for(self, depth: int, loop: bool) -> None:
        over = self.draw(st.sampled_from(["range(choose(3))", "range(fail())"]))
        self._loop(depth, loop, f"for i in {over}:")

    def _endless(self, depth: int, loop: bool) -> None:
        self.put(depth, "while True:")
        self.put(depth + 1, "pay()")
        self.suite(depth + 1, True)

    def _try(self, depth: int, loop: bool) -> None:
        self.put(depth, "try:")
        self.suite(depth + 1, loop)
        clauses = self.draw(
            st.sampled_from([["A"], ["A", "B"], ["B as e"], ["(A, B)"], ["A", ""], ["fail() or A"]])
        )
        for clause in clauses:
            self.put(depth, f"except {clause}:".replace(" :", ":"))
            self.suite(depth + 1, loop)
        if self.draw(st.booleans()):
            self.put(depth, "else:")
            self.suite(depth + 1, loop)
        if self.draw(st.booleans()):
            self.put(depth, "finally:")
            self.suite(depth + 1, loop)

    def _finally(self, depth: int, loop: bool) -> None:
        self.put(depth, "try:")
        self.suite(depth + 1, loop)
        self.put(depth, "finally:")
        self.suite(depth + 1, loop)

    def _with(self, depth: int, loop: bool) -> None:
        what = ["suppress(A)", "Odd(choose(5))", "suppress(B), Odd(choose(4)) as o", "suppress()"]
        self.put(depth, f"with {self.draw(st.sampled_from(what))}:")
        self.suite(depth + 1, loop)

    def _match(self, depth: int, loop: bool) -> None:
        self.put(depth, "match choose(4):")
        for case in self.draw(
            st.sampled_from([["0"], ["0", "1"], ["1", "_"], ["0 if fail()", "n if n > 1", "2 | 3"]])
        ):
            self.put(depth + 1, f"case {case}:")
            self.suite(depth + 2, loop)


@st.composite
def programs(draw: st.DrawFn, size: int = 14) -> str:
    """The text of a program with a function `work`."""
    writer = _Writer(draw, size)
    writer.put(0, "def work(x):")
    while writer.left > 0:
        writer.statement(1, False)
    return _PRELUDE + "\n".join(writer.lines) + "\n" + _ENTRY


inputs = st.lists(st.integers(0, 11), max_size=40)
"""What `choose` answers, the last first."""
