"""Lines and functions that a user names are found in the code, without running any of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from swarmtest.core.errors import UserError
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.languages.places import ResolvedTargets, Wanted, from_function, from_line, from_lines
from swarmtest.languages.python.statements import PythonStatements

CART = '''\
"""A cart.

Of a shop.
"""

import functools

unknown.name


class Cart:
    """Holds items."""

    limit = 10

    @functools.lru_cache
    def price(
        self,
        item,
    ):
        """What it costs.

        In cents.
        """
        # rounded
        return round(
            item.price,
            # to cents
            2,
        )

    def add(self, item):
        global count
        try:
            if item:
                self.items.append(item); count += 1
            else:
                pass
        except (
            ValueError,
            TypeError,
        ):
            return None
        finally:
            self.done = True

        def check(self):
            match item:
                case 0:
                    return False
                case _ if item > 3:
                    return True

        return check

    def one(self): return 1

    def nothing(self):
        """To do."""


def last():
    async def inner():
        await later()
    return inner
'''


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with `shop/cart.py`; the current directory is its top."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop/__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "shop/cart.py").write_text(CART)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(found: ResolvedTargets) -> list[int]:
    return [one.line for one in found.wanted]


def line_with(words: str) -> int:
    return 1 + next(n for n, line in enumerate(CART.splitlines()) if words in line)


def test_a_line_is_found_with_its_place_and_function(shop: Path) -> None:
    line = line_with("self.done = True")
    assert from_line(f"shop/cart.py:{line}") == ResolvedTargets(
        (
            Wanted(
                str((shop / "shop/cart.py").resolve()),
                line,
                f"--line shop/cart.py:{line}",
                "Cart.add",
            ),
        )
    )


@pytest.mark.parametrize(
    ("named", "meant"),
    [
        ("item.price,", "return round("),
        ("# to cents", "return round("),
        ("TypeError,", "except ("),
        ("count += 1", "self.items.append"),
        ("case _ if", "case _ if"),
        ("def check", "def check"),
        ("await later", "await later"),
        ("limit = 10", "limit = 10"),
    ],
)
def test_a_line_means_the_first_line_of_its_statement(shop: Path, named: str, meant: str) -> None:
    assert lines(from_line(f"shop/cart.py:{line_with(named)}")) == [line_with(meant)]


@pytest.mark.parametrize("named", ["@functools", "def price", "        item,"])
def test_the_header_of_a_function_means_its_first_statement(shop: Path, named: str) -> None:
    found = from_line(f"shop/cart.py:{line_with(named)}")
    assert lines(found) == [line_with("return round(")]
    assert found.wanted[0].function == "Cart.price"


@pytest.mark.parametrize(
    ("named", "what"),
    [
        ("Of a shop", "is part of a docstring; the nearest statement is"),
        ("In cents", "is part of a docstring; the nearest statements are"),
        ("# rounded", "is a comment; the nearest statements are"),
        ("else:", "is only `else:`, which is not executed itself; the nearest"),
        ("finally:", "is only `finally:`"),
        ("global count", "is no code that is executed"),
    ],
)
def test_a_line_that_is_no_statement_is_refused_with_the_nearest_ones(
    shop: Path, named: str, what: str
) -> None:
    line = line_with(named)
    with pytest.raises(UserError, match=f"^cart.py:{line} {what}"):
        from_line(f"shop/cart.py:{line}")


def test_the_nearest_statements_are_those_above_and_below(shop: Path) -> None:
    (shop / "a.py").write_text("x = 1\n\n# note\n\ny = 2\n")
    with pytest.raises(
        UserError, match=r"^a.py:3 is a comment; the nearest statements are 1 and 5"
    ):
        from_line("a.py:3")
    with pytest.raises(UserError, match=r"^a.py:2 is blank; the nearest statements are 1 and 5$"):
        from_line("a.py:2")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("shop/cart.py:900", "there is no line 900; cart.py has lines 1 to"),
        ("shop/cart.py:0", "there is no line 0; cart.py has lines 1 to"),
        ("empty.py:1", "there is no line 1; empty.py is empty"),
        ("shop/cart.py", "write FILE:LINE, as in cart.py:120"),
        ("shop/cart.py:", "write FILE:LINE"),
        ("shop/cart.py:x", "write FILE:LINE"),
        ("shop/cart.py:-3", "write FILE:LINE"),
        ("shop/cart.py:" + "9" * 5000, "write FILE:LINE"),
        ("", "write FILE:LINE"),
        (":12", "write FILE:LINE"),
        ("shop/cart.py:3-5", "for a range: --lines shop/cart.py:3-5"),
        ("shop:3", "shop is a directory; name a file in it"),
        ("shop/crat.py:3", "there is no file shop/crat.py; did you mean 'shop/cart.py'?"),
        ("cart.py:3", "there is no file cart.py; did you mean 'shop/cart.py'?"),
        ("lib/carts.py:3", "there is no file lib/carts.py; did you mean 'shop/cart.py'?"),
        ("zzz.c:3", "there is no file zzz.c (looked from "),
        ("z" * 3000 + ":3", "there is no file zzz"),
        ("a\0b:3", "there is no file a"),
        ("broken.py:1", "broken.py:2 is not valid Python: "),
    ],
)
def test_what_is_no_line_is_refused_in_one_line(shop: Path, text: str, why: str) -> None:
    (shop / "empty.py").touch()
    (shop / "broken.py").write_text("x = 1\ny = = 2\n")
    with pytest.raises(UserError) as refused:
        from_line(text)
    assert why in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_column_behind_the_line_is_left_out(shop: Path) -> None:
    line = line_with("self.done")
    assert lines(from_line(f"shop/cart.py:{line}:13")) == [line]


def test_a_file_is_found_from_here_from_the_top_and_from_anywhere(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = shop / "link.py"
    link.symlink_to("shop/cart.py")
    monkeypatch.chdir(shop / "shop")
    line = line_with("self.done")
    names = ("cart.py", "shop/cart.py", "./cart.py", str(shop / "shop/cart.py"), str(link))
    places = {from_line(f"{name}:{line}").wanted[0].place for name in names}
    assert places == {str((shop / "shop/cart.py").resolve())}


def test_names_with_spaces_colons_and_other_letters_are_names(shop: Path) -> None:
    for name in ("my shop.py", "Käse.py", "a:b.py"):
        (shop / name).write_text("x = 1\n")
        assert from_line(f"{name}:1").wanted[0].place == str(shop.resolve() / name)


def test_a_file_in_its_own_encoding_with_dos_line_ends_is_read_as_python_does(shop: Path) -> None:
    text = '# coding: latin-1\nx = (\n "ä",\n)\ny = "\f"\r\nz = 1\n'.replace("\n", "\r\n")
    (shop / "old.py").write_bytes(text.encode("latin-1"))
    assert lines(from_lines("old.py:1-9")) == [2, 5, 7]


C = """\
#include <stdio.h>
/* a
   comment */
static int
twice(int x)
{
  // up
  if (x > 0 /* yes */
      && x < 9) {
    puts("// no comment");
  } else {
    x++;
  }

  return x;
}

int Cart::add(int x) { return twice(x); }
"""


def test_lines_of_c_are_those_with_code_on_them(shop: Path) -> None:
    (shop / "calc.cc").write_text(C)
    found = from_lines("calc.cc:1-99")
    assert lines(found) == [4, 5, 8, 9, 10, 12, 15, 18]
    assert {one.line: one.function for one in found.wanted}[12] == "twice"
    assert lines(from_line("calc.cc:13")) == [13]  # gcov names some closing braces
    for line, what in ((1, "a directive"), (3, "a comment"), (14, "blank")):
        with pytest.raises(UserError, match=f"^calc.cc:{line} is {what}"):
            from_line(f"calc.cc:{line}")


def test_a_function_of_c_is_where_its_statements_begin(shop: Path) -> None:
    (shop / "calc.cc").write_text(C)
    assert lines(from_function("calc.cc:twice")) == [8, 10, 12, 15]
    with pytest.raises(UserError, match="has no function 'add'; did you mean 'Cart::add'"):
        from_function("calc.cc:add")


def test_a_function_of_c_on_one_line_is_that_line(shop: Path) -> None:
    (shop / "calc.cc").write_text(C)
    assert lines(from_function("calc.cc:Cart::add")) == [18]


def test_lines_of_other_languages_are_kept_unless_they_are_blank(shop: Path) -> None:
    (shop / "calc.rs").write_text("fn f() {\n\n    // note\n    g();\n}\n")
    assert lines(from_line("calc.rs:4")) == [4]
    assert lines(from_lines("calc.rs:1-3")) == [1, 3]
    with pytest.raises(UserError, match=r"calc.rs:2 is blank; the nearest statements are 1 and 3"):
        from_line("calc.rs:2")


def test_a_script_without_an_ending_is_python_if_it_says_so(shop: Path) -> None:
    (shop / "run").write_text("#!/usr/bin/env python3\nx = (\n1)\n")
    assert lines(from_line("run:3")) == [2]


def test_a_range_skips_what_is_not_executed(shop: Path) -> None:
    first, last = line_with("def add"), line_with("pass")
    found = lines(from_lines(f"shop/cart.py:{first}-{last}"))
    assert found == [line_with(w) for w in ("try:", "if item:", "self.items.append", "pass")]


def test_a_range_may_end_behind_the_end_of_the_file(shop: Path) -> None:
    first = line_with("async def inner")
    expected = [line_with(w) for w in ("async def inner", "await later", "return inner")]
    assert lines(from_lines(f"shop/cart.py:{first}-9999")) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("shop/cart.py:1-4", "there is no statement in cart.py:1-4; the nearest statement is 6"),
        ("shop/cart.py:9-6", "the range is backwards; write cart.py:6-9"),
        ("shop/cart.py:1-", "write FILE:FIRST-LAST, as in cart.py:100-140"),
        ("shop/cart.py:600-700", "there is no line 600; cart.py has lines 1 to"),
    ],
)
def test_what_is_no_range_is_refused(shop: Path, text: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        from_lines(text)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "shop.cart:Cart.add",
        "shop/cart.py:Cart.add",
        "shop/cart.py::Cart.add",
        "shop.cart:Cart.add()",
    ],
)
def test_a_function_is_all_statements_of_its_body_and_nothing_is_imported(
    shop: Path, name: str
) -> None:
    found = from_function(name)
    first, last = line_with("try:"), line_with("return check")
    assert lines(found)[0] == first
    assert lines(found)[-1] == last
    assert lines(found) == lines(from_lines(f"shop/cart.py:{first}-{last}"))


def test_a_nested_function_is_named_with_or_without_locals(shop: Path) -> None:
    expected = [line_with(word) for word in ("match item", "case 0", "return False", "case _ if")]
    expected.append(line_with("return True"))
    assert lines(from_function("shop.cart:Cart.add.check")) == expected
    assert lines(from_function("shop.cart:Cart.add.<locals>.check")) == expected
    assert lines(from_function("shop.cart:last.inner")) == [line_with("await later")]


def test_a_function_on_one_line_is_that_line(shop: Path) -> None:
    found = from_function("shop.cart:Cart.one")
    assert lines(found) == [line_with("def one")]
    assert found.wanted[0].function == "Cart.one"


def test_a_class_is_all_its_functions(shop: Path) -> None:
    found = from_function("shop.cart:Cart")
    assert line_with("limit = 10") not in lines(found)
    assert {one.function for one in found.wanted} == {
        "Cart.price",
        "Cart.add",
        "Cart.add.<locals>.check",
        "Cart.one",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("shop.cart:Cart.ad", "cart.py has no function 'Cart.ad'; did you mean 'Cart.add'?"),
        ("shop.cart:add", "cart.py has no function 'add'; did you mean 'Cart.add'?"),
        ("shop.cart:Cart.nothing", "Cart.nothing has no statement that could be executed"),
        ("shop.basket:add", "there is no module 'shop.basket'; name its file: PATH.py:FUNCTION"),
        ("nowhere.basket:add", "there is no module 'nowhere.basket'"),
        ("shop.cart.add", "write MODULE:FUNCTION or FILE:FUNCTION"),
        ("shop.cart:", "write MODULE:FUNCTION"),
        ("", "write MODULE:FUNCTION"),
        ("shop cart:add", "'shop cart' is neither a module's name nor a file"),
        ("shop/none.py:add", "there is no file shop/none.py"),
        ("calc.rs:main", "functions are found in Python and C files only; name lines of calc.rs"),
        ("calc.c:mian", "calc.c has no function 'mian'; did you mean 'main'?"),
        ("math:sin", "math is compiled: its functions cannot be found"),
        ("space:f", "space is a package without a file of its own"),
    ],
)
def test_what_is_no_function_is_refused_in_one_line(shop: Path, text: str, why: str) -> None:
    (shop / "calc.c").write_text("int main(void) { return 0; }\n")
    (shop / "calc.rs").write_text("fn main() {}\n")
    (shop / "space").mkdir()
    with pytest.raises(UserError) as refused:
        from_function(text)
    assert why in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_module_below_src_is_found(shop: Path) -> None:
    package = shop / "src/deep/er"
    package.mkdir(parents=True)
    (package / "mod.py").write_text("def f():\n    return 1\n")
    assert from_function("deep.er.mod:f").wanted[0].place == str(package.resolve() / "mod.py")


def test_an_installed_module_is_found() -> None:
    found = from_function("textwrap:dedent")
    assert os.path.basename(found.wanted[0].place) == "textwrap.py"
    assert len(found.wanted) > 5


def test_warnings_of_the_program_are_its_own(shop: Path) -> None:
    (shop / "odd.py").write_text('x = "\\d"\nif x is 1:\n    pass\n')
    assert lines(from_line("odd.py:2")) == [2]


def test_statements_are_named_as_coverage_names_them(shop: Path) -> None:
    text = dedent(CART).replace("unknown.name", "")
    (shop / "watched_cart.py").write_text(text)
    with Coverage(CoverageOptions(("line",), ("watched_cart",))) as coverage:
        sys.path.insert(0, str(shop))
        try:
            __import__("watched_cart")
        finally:
            sys.path.remove(str(shop))
            sys.modules.pop("watched_cart", None)
        coverage.settle()
        named = {t.line: t.function for t in coverage.catalogue.targets if t.kind == "line"}
    statements = PythonStatements(text, "watched_cart.py")
    assert set(statements.lines) <= set(named)
    headers = {line for line, function in named.items() if not function}
    assert set(named) - set(statements.lines) <= headers
    inside = {line: function for line, function in named.items() if function}
    assert {line: statements.function_at(line) for line in inside} == inside


def test_places_are_united_each_once_with_the_words_that_came_first() -> None:
    first, second = Wanted("/a.py", 1, "--line a.py:1"), Wanted("/a.py", 1, "--diff main")
    both = ResolvedTargets((first,), ("x",), ("fault:1",)) + ResolvedTargets(
        (second,), ("x", "y"), ("fault:1",)
    )
    assert both == ResolvedTargets((first,), ("x", "y"), ("fault:1",))


def test_a_module_of_the_project_comes_before_an_installed_one_of_that_name(
    shop: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("installed")
    (other / "shop.py").write_text("x = 1\n")
    (shop / "shop/__init__.py").unlink()
    monkeypatch.syspath_prepend(str(other))
    assert from_function("shop.cart:last").wanted[0].place == str((shop / "shop/cart.py").resolve())
