"""Who calls a Python function, as far as names tell."""

from __future__ import annotations

from textwrap import dedent

import pytest

from swarmtest.languages.python.callers import TOO_MANY, CallSite, call_sites


def _sites(function: str, place: str = "a.py", harness: str = "", **files: str) -> list[str]:
    sources = {f"{name}.py": dedent(text).lstrip("\n") for name, text in files.items()}
    found = call_sites(function, sources, place, harness)
    return [f"{site.place}:{site.line} {site.caller} {site.feature}".strip() for site in found]


def test_a_call_and_a_callback_are_both_call_sites() -> None:
    text = """
        def double(x):
            return 2 * x
        def g(x):
            y = double(
                x)
            return map(double, y)
    """
    assert _sites("double", a=text) == ["a.py:4 g", "a.py:6 g"]


def test_a_call_in_the_middle_of_a_statement_is_at_its_first_line() -> None:
    text = """
        def double(x): ...
        def g(x):
            return [
                1,
                double(x),
            ]
    """
    assert _sites("double", a=text) == ["a.py:3 g"]


def test_a_function_of_another_module_is_called_through_its_import_only() -> None:
    other = """
        from a import parse as read
        import a
        def one(x): return read(x)
        def two(x): return a.parse(x)
        def three(parse): return parse(1)
        def four(x): return x.parse()
    """
    assert _sites("parse", a="def parse(x): ...", b=other) == ["b.py:3 one", "b.py:4 two"]


def test_self_means_the_own_class_and_its_relatives() -> None:
    text = """
        class Base:
            def run(self): self.step()
        class Mine(Base):
            def step(self): ...
        class Other:
            def step(self): ...
            def run(self): self.step()
        def drive(thing): thing.step()
    """
    assert _sites("Mine.step", a=text) == ["a.py:2 Base.run", "a.py:8 drive"]


def test_a_constructor_is_called_by_calling_its_class_or_one_below_it() -> None:
    text = """
        class Cart:
            def __init__(self): ...
            @classmethod
            def empty(cls): return cls()
        class Big(Cart):
            def __init__(self):
                super().__init__()
        def shop(): return Cart()
        def mall(): return Big()
        def unrelated(): return list()
    """
    found = _sites("Cart.__init__", a=text)
    assert {"a.py:4 Cart.empty", "a.py:7 Big.__init__", "a.py:8 shop", "a.py:9 mall"} <= set(found)
    assert not any("unrelated" in site for site in found)


def test_a_property_is_called_by_reading_it_and_its_setter_by_assigning() -> None:
    text = """
        class Cart:
            @property
            def size(self): ...
            @size.setter
            def size(self, value): ...
        def read(cart): return cart.size
    """
    assert "a.py:6 read" in _sites("Cart.size", a=text.replace("@size.setter", "@property"))
    writes = text.replace("return cart.size", "cart.size = 3")
    assert "a.py:6 read" in _sites("Cart.size", a=writes)


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("__enter__", "with x: pass"),
        ("__len__", "len(x)"),
        ("__iter__", "[y for y in x]"),
        ("__next__", "for y in x: pass"),
        ("__getitem__", "x[0]"),
        ("__setitem__", "x[0] = 1"),
        ("__delitem__", "del x[0]"),
        ("__contains__", "1 in x"),
        ("__eq__", "x == 1"),
        ("__radd__", "1 + x"),
        ("__iadd__", "x += 1"),
        ("__neg__", "-x"),
        ("__repr__", "f'{x!r}'"),
        ("__str__", "f'{x}'"),
        ("__aenter__", "async with x: pass"),
    ],
)
def test_syntax_calls_special_methods(method: str, code: str) -> None:
    text = f"class C:\n    def {method}(self): ...\nasync def use(x):\n    {code}\n"
    assert _sites(f"C.{method}", a=text) == ["a.py:4 use"]


def test_a_nested_function_is_called_in_the_function_around_it_only() -> None:
    text = """
        def outer(x):
            def inner(y): return y
            return inner(x)
        def inner(z): ...
        def other(): return inner(1)
    """
    assert _sites("outer.<locals>.inner", a=text) == ["a.py:3 outer"]


def test_a_name_that_is_called_nearly_everywhere_says_nothing() -> None:
    calls = "".join(f"def g{i}(x): x.get()\n" for i in range(TOO_MANY + 1))
    assert _sites("Shelf.get", a="class Shelf:\n    def get(self): ...\n", b=calls) == []


def test_where_a_name_is_called_everywhere_the_own_class_still_tells() -> None:
    own = "class Shelf:\n    def get(self): ...\n    def first(self): return self.get()\n"
    calls = "".join(f"def g{i}(x): x.get()\n" for i in range(TOO_MANY + 1))
    assert _sites("Shelf.get", a=own, b=calls) == ["a.py:3 Shelf.first"]


def test_an_action_of_the_harness_is_a_feature() -> None:
    harness = """
        from a import Cart
        class Shopping(Machine):
            def start(self): self.cart = Cart()
            @action(item=integers(0, 9))
            def remove(self, item):
                self.cart.remove(item)
            @swarmtest.action
            def clear(self):
                (lambda: self.cart.remove(0))()
            def _helper(self):
                self.cart.remove(1)
    """
    own = "class Cart:\n    def remove(self, item): ...\n"
    assert _sites("Cart.remove", a=own, harness="h.py", h=harness) == [
        "h.py:6 Shopping.remove remove",
        "h.py:9 Shopping.clear clear",
        "h.py:11 Shopping._helper",
    ]


def test_a_file_that_is_not_python_is_passed_over() -> None:
    sources = {"a.py": "def f(): ...\ndef g(): f()\n", "b.py": "def f(:\n"}
    assert call_sites("f", sources, "a.py") == [CallSite("a.py", 2, "g")]
