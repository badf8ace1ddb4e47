"""Which mutants a text has."""

from __future__ import annotations

import textwrap

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source
from swarmtest.mutate.generation import all_mutants, mutants_of
from swarmtest.mutate.operators import OPERATORS, parse_operators


def changed(text: str, operators: str = "all") -> list[str]:
    """What the changed lines read."""
    source = Source("shop.py", textwrap.dedent(text))
    return [mutant.after.strip() for mutant in mutants_of(source, operators)]


def in_function(line: str, operators: str) -> list[str]:
    return changed(f"def f(x, y, z):\n    {line}\n", operators)


@pytest.mark.parametrize(
    ("operators", "line", "expected"),
    [
        ("integers", "x = 7", ["x = 0", "x = 1", "x = -1", "x = 8", "x = 6"]),
        ("floats", "x = 1.5", ["x = 0.0", "x = 2.5", "x = -1.5"]),
        ("strings", "x = 'a'", ["x = ''"]),
        ("strings", "x = ''", ["x = 'mutated'"]),
        ("none", "x = None", ["x = ''"]),
        ("booleans", "x = True", ["x = False"]),
        ("arithmetic", "x = y ** z", ["x = y * z"]),
        ("relational", "return x < y", ["return x <= y", "return x > y", "return x >= y",
                                        "return x == y", "return x != y"]),
        ("logical", "return x and y", ["return x or y"]),
        ("bitwise", "return x << y", ["return x >> y"]),
        ("bitwise", "return x & y", ["return x | y", "return x ^ y"]),
        ("unary", "return -x", ["return x"]),
        ("not", "return not x", ["return x"]),
        ("membership", "return x in y", ["return x not in y"]),
        ("identity", "return x is y", ["return x is not y"]),
        ("augmented", "x |= y", ["x &= y", "x ^= y", "x = y"]),
        ("negate", "return x if y else z", ["return x if not y else z"]),
        ("delete", "x.sell()", ["pass"]),
        ("returns", "return x", ["return None"]),
        ("comprehensions", "return [i for i in x if i]",
         ["return [i for i in x if True]", "return [i for i in x if not i]"]),
        ("slices", "return x[y:z]", ["return x[:z]", "return x[y:]"]),
        ("builtins", "return min(x)", ["return max(x)"]),
    ],
)  # fmt: skip
def test_an_operator_makes_the_changes_that_it_names(
    operators: str, line: str, expected: list[str]
) -> None:
    assert in_function(line, operators) == expected


def test_a_loop_is_left_or_continued_the_other_way() -> None:
    text = "def f(x):\n    for i in x:\n        if i:\n            break\n        x.add(i)\n"
    assert changed(text, "jumps") == ["continue"]


def test_an_except_clause_raises_again_what_it_caught() -> None:
    text = "def f(x):\n    try:\n        x()\n    except OSError:\n        return 1\n"
    assert changed(text, "handlers") == ["raise"]


def test_a_default_argument_is_changed_as_its_constant_is() -> None:
    assert changed("def f(x=2, *, y=True):\n    return x\n", "defaults") == [
        "def f(x=0, *, y=True):",
        "def f(x=1, *, y=True):",
        "def f(x=-1, *, y=True):",
        "def f(x=3, *, y=True):",
        "def f(x=2, *, y=False):",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring."""\n',
        "def f():\n    'A docstring.'\n",
        "__all__ = ['f']\n",
        "class A:\n    __slots__ = ('a',)\n",
        "def f(x: 'int' = y) -> 'int': ...\n".replace("...", "pass"),
        "if TYPE_CHECKING:\n    x = 1\n",
        "if __name__ == '__main__':\n    x = 1\n",
        "def f(x):  # pragma: no mutate\n    return x + 1\n",
        "def f(x):\n    x = 1  # pragma: no cover\n",
        "def f(x):\n    logger.info('%s', 1)\n",
    ],
)
def test_what_does_not_matter_is_left_alone(text: str) -> None:
    assert changed(text, "all,-logging") == []


def test_the_message_of_an_assertion_is_left_alone() -> None:
    assert in_function("assert x, 'message'", "strings,delete") == ["pass"]


def test_log_calls_are_changed_on_request() -> None:
    assert in_function("logger.info('a')", "strings,logging") == ["logger.info('')"]


def test_a_mutant_that_compiles_to_the_same_code_is_dropped_and_counted() -> None:
    source = Source("shop.py", "def f(x):\n    x()\n    return None\n")
    found = all_mutants(source, "delete")
    assert [mutant.before.strip() for mutant in found.mutants] == ["x()"]
    assert found.equivalent == 1


def test_a_mutant_that_compiles_to_another_mutant_is_dropped() -> None:
    # Negating `not x` and leaving out `not` is the same.
    assert changed("def f(x):\n    if not x:\n        x()\n", "negate,not") == [
        "if not (not x):"
    ] or changed("def f(x):\n    if not x:\n        x()\n", "negate,not") == ["if x:"]


def test_only_the_lines_that_are_asked_for_are_changed() -> None:
    source = Source("shop.py", "def f(x):\n    x += 1\n    x += 2\n")
    assert {mutant.line for mutant in mutants_of(source, "", [3])} == {3}


def test_an_id_survives_edits_elsewhere_in_the_file() -> None:
    text = "def f(x):\n    return x + 1\n"
    before = mutants_of(Source("shop.py", text), "arithmetic")
    after = mutants_of(Source("shop.py", f"import os\n\n\ndef g():\n    pass\n\n\n{text}"))
    assert {mutant.id for mutant in before} <= {mutant.id for mutant in after}


def test_ids_tell_equal_statements_apart() -> None:
    source = Source("shop.py", "def f(x):\n    x += 1\n    x += 1\n")
    ids = [mutant.id for mutant in mutants_of(source)]
    assert len(set(ids)) == len(ids) > 0


def test_a_mutant_is_a_target_in_its_file() -> None:
    source = Source("shop.py", "def f(x):\n    return x + 1\n")
    mutant = mutants_of(source, "arithmetic")[0]
    target = mutant.target(source)
    assert str(target) == f"mutant:shop.py:2 {mutant.id}"
    assert (target.function, target.source) == ("f", source.id)


def test_operators_are_named_left_out_and_checked() -> None:
    assert parse_operators("all") == set(OPERATORS)
    assert parse_operators("") == set(OPERATORS) - {"logging"}
    assert parse_operators("-strings") == set(OPERATORS) - {"logging", "strings"}
    with pytest.raises(UserError, match="did you mean 'strings'"):
        parse_operators("string")
    with pytest.raises(UserError, match="no operator is left"):
        parse_operators("negate,-negate")


def test_a_file_with_a_syntax_error_is_one_clear_line() -> None:
    with pytest.raises(UserError, match=r"^shop.py:1: cannot be mutated"):
        mutants_of(Source("shop.py", "def f(:\n"))


def test_text_outside_of_ascii_is_shown_as_it_is() -> None:
    assert in_function("return 'é' if x == 1 else 'ü'", "relational")[0] == (
        "return 'é' if x < 1 else 'ü'"
    )
