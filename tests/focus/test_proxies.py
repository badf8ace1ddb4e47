"""The nearest place with data that leads to a line, and how a user is told."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from swarmtest.focus.proxies import NoProxy, Proxy, implied_by, nearest_with_data

CART = dedent("""\
    class Cart:
        def total(self):
            s = sum(self.items)
            if self.member:
                return self.discount(s)
            return s

        def discount(self, s):
            if s > 10:
                return s * 0.9
            return s
""")
HARNESS = dedent("""\
    from cart import Cart
    class Shopping(Machine):
        def start(self):
            self.cart = Cart()
        @action
        def pay(self):
            self.cart.total()
        @action
        def cheat(self):
            self._discount()
        def _discount(self):
            self.cart.discount(3)
""")


def _nearest(
    place: str, line: int, texts: dict[str, str], hits: dict[str, int], harness: str = ""
) -> Proxy | NoProxy:
    """`hits` by "file:line"; twelve are enough."""

    def hits_of(file: str, number: int) -> int:
        return hits.get(f"{file}:{number}", 0)

    return nearest_with_data(place, line, texts, hits_of, 12, harness)


def _cart(hits: dict[str, int], line: int = 10) -> Proxy | NoProxy:
    return _nearest("cart.py", line, {"cart.py": CART, "h.py": HARNESS}, hits, "h.py")


def test_the_nearest_line_before_it_in_its_function_comes_first() -> None:
    found = _cart({"cart.py:9": 12, "cart.py:5": 99})
    assert found == Proxy((("cart.py", 9),), (), "line 9, which comes before it")


def test_a_line_with_too_few_hits_is_passed_over_for_the_call() -> None:
    found = _cart({"cart.py:9": 11, "cart.py:5": 12, "cart.py:4": 99})
    assert isinstance(found, Proxy)
    assert found.places == (("cart.py", 5),)
    assert found.how == "line 5, the call of discount() in Cart.total"


def test_a_call_without_data_is_replaced_by_the_line_before_it() -> None:
    found = _cart({"cart.py:4": 50, "cart.py:3": 50})
    assert isinstance(found, Proxy)
    assert found.places == (("cart.py", 4),)
    assert found.how == "line 4, which comes before the call of discount() in Cart.total"


def test_without_any_line_the_actions_that_lead_there_are_features() -> None:
    found = _cart({})
    assert found == Proxy((), ("pay", "cheat"), "the actions `pay` and `cheat` lead to it")


def test_an_action_that_calls_it_itself_is_said_to_call_it() -> None:
    found = _cart({}, line=3)
    assert found == Proxy((), ("pay",), "the action `pay` calls it")


def test_of_several_calls_the_union_is_meant() -> None:
    texts = {
        "p.py": "def parse(x):\n    return int(x)\n",
        "a.py": "from p import parse\ndef one(x):\n    return parse(x)\n",
        "b.py": "import p\ndef two(x):\n    y = x\n    return p.parse(y)\n",
        "c.py": "import p\ndef three(x):\n    return p.parse(x)\n",
    }
    found = _nearest("p.py", 2, texts, {"a.py:3": 40, "b.py:4": 3})
    assert found == Proxy(
        (("a.py", 3), ("b.py", 4)), (), "the calls of parse() in a.py:3 and b.py:4"
    )
    found = _nearest("p.py", 2, texts, {"c.py:3": 40})
    assert isinstance(found, Proxy)
    assert found.how == "c.py:3, the call of parse() in three"


def test_of_many_calls_the_first_are_named() -> None:
    text = "def new():\n    g()\n" + "".join(f"def f{i}():\n    new()\n" for i in range(7))
    found = _nearest("x.py", 2, {"x.py": text}, {f"x.py:{line}": 20 for line in range(4, 17)})
    assert isinstance(found, Proxy)
    assert len(found.places) == 7
    assert found.how == "the calls of new() in x.py:4, x.py:6, x.py:8 and 4 more"


def test_callers_of_callers_are_asked() -> None:
    text = "def a():\n    b()\ndef b():\n    c()\ndef c():\n    d()\ndef d():\n    new()\n"
    found = _nearest("x.py", 8, {"x.py": text}, {"x.py:2": 20})
    assert found == Proxy((("x.py", 2),), (), "line 2, the call of b() in a, which leads to it")


def test_functions_that_only_call_each_other_are_no_way_in() -> None:
    text = "def even(n):\n    return odd(n - 1)\ndef odd(n):\n    return even(n - 1)\n"
    found = _nearest("x.py", 2, {"x.py": text}, {})
    assert found == NoProxy("nothing that leads to it was executed by 12 tests or more")


def test_a_function_that_nobody_calls_is_said_so() -> None:
    found = _nearest("x.py", 2, {"x.py": "def new():\n    g()\n"}, {})
    assert isinstance(found, NoProxy)
    assert "no call of it was found" in found.reason


def test_a_nested_function_without_calls_is_reached_through_its_definition() -> None:
    text = dedent("""\
        def outer(x):
            a = x
            @register
            def inner(y):
                return y
            return a
    """)
    found = _nearest("x.py", 5, {"x.py": text}, {"x.py:2": 30})
    assert isinstance(found, Proxy)
    assert found.how == "line 2, which leads to the definition of inner()"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("def f():\n    return 1\n    g()\n", 3, "line 3 is dead code"),
        ("x = 1\ny = 2\n", 2, "line 2 runs when x.py is imported"),
        ("def f(:\n", 1, "the file is not Python"),
        ("def f():\n    g()\n", 99, "no statement begins on line 99"),
    ],
)
def test_why_there_is_none_is_said(text: str, line: int, reason: str) -> None:
    found = _nearest("x.py", line, {"x.py": text}, {})
    assert isinstance(found, NoProxy)
    assert reason in found.reason


def test_a_file_whose_text_is_not_known_is_said() -> None:
    assert _nearest("y.py", 1, {}, {}) == NoProxy("the text of y.py is not known")


C = dedent("""\
    static int scale(int x)
    {
      if (x > 10)
        return x / 2;
      return x;
    }
    int total(int x)
    {
      int y = x;
      if (y > 3)
        y = add(y,
                scale(y));
      return y;
    }
""")


def test_in_c_lines_of_the_function_come_before_its_calls() -> None:
    found = _nearest("s.c", 4, {"s.c": C}, {"s.c:3": 12, "s.c:11": 50})
    assert found == Proxy((("s.c", 3),), (), "line 3, which comes before it")


def test_in_c_a_new_function_is_reached_through_its_call() -> None:
    found = _nearest("s.c", 4, {"s.c": C}, {"s.c:12": 30, "s.c:9": 50})
    assert isinstance(found, Proxy)
    assert found.how == "line 12, the call of scale() in total"
    found = _nearest("s.c", 4, {"s.c": C}, {"s.c:11": 30, "s.c:9": 50})
    assert isinstance(found, Proxy)
    assert found.how == "line 11, which comes before the call of scale() in total"


def test_in_c_a_line_outside_of_functions_has_no_proxy() -> None:
    found = _nearest("s.c", 7, {"s.c": "int x;\n" + C}, {})
    assert isinstance(found, NoProxy)
    assert _nearest("s.c", 1, {"s.c": "int x;\n" + C}, {}) == NoProxy("line 1 is in no function")


def _columns(*rows: str) -> np.ndarray:
    return np.array([[mark == "x" for mark in row] for row in rows])


def test_the_rarest_line_that_all_tests_of_the_target_hit_is_implied() -> None:
    hits = _columns("xxx.", "xx.x", "xxx.", "x..x", "x..x")
    target = np.array([True, False, True, False, False])
    assert implied_by(target, hits, [3, 5, 7, 9], enough=2) == 7
    assert implied_by(target, hits, [3, 5, 7, 9], enough=3) == 5
    assert implied_by(target, hits, [3, 5, 7, 9], enough=6) is None


def test_a_dominator_is_preferred_to_a_rarer_line_that_may_be_chance() -> None:
    hits = _columns("xxx", "xx.", "xxx", "x..")
    target = np.array([True, False, False, False])
    assert implied_by(target, hits, [3, 5, 7], enough=2, dominators=[5, 3]) == 5
    assert implied_by(target, hits, [3, 5, 7], enough=4, dominators=[5, 3]) == 3


@given(
    arrays.arrays(bool, (8, 5)),
    arrays.arrays(bool, 8),
    st.integers(1, 6),
    st.permutations(range(5)),
)
def test_an_implied_line_is_hit_by_every_test_of_the_target(
    hits: np.ndarray, target: np.ndarray, enough: int, lines: list[int]
) -> None:
    lines = [line + 1 for line in lines]
    found = implied_by(target, hits, lines, enough)
    fit = {
        line: int(hits[:, i].sum())
        for i, line in enumerate(lines)
        if hits[:, i].sum() >= enough and not (target & ~hits[:, i]).any()
    }
    assert (found is None) == (not fit)
    assert found is None or fit[found] == min(fit.values())
