"""What is changed in a C file. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from swarmtest.core.errors import UserError
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.native.generation import c_mutants_of

pytest.importorskip("tree_sitter_c", reason="pip install 'swarmtest[c]'")

Make = Callable[..., list[Mutant]]


@pytest.fixture
def mutants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.chdir(tmp_path)

    def make(text: str, operators: str = "") -> list[Mutant]:
        path = tmp_path / "prog.c"
        path.write_text(text)
        return c_mutants_of(path, operators)

    return make


def expressions(mutants: Make, before: str, operators: str = "") -> list[str]:
    """What stands in the place of an expression."""
    found = mutants(f"int f(int a, int b, int c, int *p) {{ x = {before}; }}", operators)
    lines = [mutant.after for mutant in found if "x =" in mutant.after]
    return [line[line.index("x = ") + 4 : -3] for line in lines]


@pytest.mark.parametrize(
    ("operator", "others"),
    [
        ("+", "- * / %"),
        ("<", "<= > >= == !="),
        ("&&", "||"),
        ("&", "| ^"),
        ("<<", ">>"),
        ("+=", "-= *= /= %="),
        ("|=", "&= ^="),
    ],
)
def test_an_operator_becomes_another_of_its_class(
    mutants: Make, operator: str, others: str
) -> None:
    expected = [f"a {other} b" for other in others.split()]
    assert expressions(mutants, f"a {operator} b") == expected


def test_counting_up_becomes_counting_down(mutants: Make) -> None:
    assert expressions(mutants, "a++") == ["a--"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("7", "0 1 -1 8 6"),
        ("1", "0 -1 2"),
        ("0x10UL", "0UL 1UL -1UL 17UL 15UL"),
        ("010", "0 1 -1 9 7"),
        ("1.5", ""),
        ("'c'", ""),
    ],
)
def test_an_integer_becomes_0_1_minus_1_and_its_neighbours(
    mutants: Make, before: str, after: str
) -> None:
    assert expressions(mutants, before) == after.split()


def test_a_change_keeps_what_its_operands_are(mutants: Make) -> None:
    assert "(a + b) * c" in expressions(mutants, "a * b * c", "arithmetic")
    assert "a * (b - c)" in expressions(mutants, "a + (b - c)", "arithmetic")
    assert "a * b / c" in expressions(mutants, "a * b + c", "arithmetic")


def test_decisions_are_negated(mutants: Make) -> None:
    found = mutants("void f(int a) {\nif (a)\nwhile (a > 1)\na = a ? 2 : 3;\n}", "negate")
    assert [mutant.after for mutant in found] == [
        "if (!(a))",
        "while (!(a > 1))",
        "a = !(a) ? 2 : 3;",
    ]


def test_statements_are_deleted_and_lines_stay_where_they_are(mutants: Make) -> None:
    found = mutants("void f(int a) {\nfor (;;) {\na++;\n}\nreturn;\n}", "delete")
    assert [(mutant.line, mutant.before) for mutant in found] == [
        (2, "for (;;) {\na++;\n}"),
        (3, "a++;"),
        (5, "return;"),
    ]
    assert {mutant.after.strip() for mutant in found} == {";"}


@pytest.mark.parametrize(
    ("body", "deleted"),
    [
        ("return 0;", []),
        ("if (a) return 1; return 0;", ["; return 0;", "if (a) ; return 0;"]),
        ("if (a) { a = 2; return a; } else return 4;", ["if (a) { ; return a; } else return 4;"]),
        ("while (a) return a; return 0;", ["; return 0;", "while (a) ; return 0;"]),
    ],
)
def test_a_function_keeps_the_statement_that_gives_its_value(
    mutants: Make, body: str, deleted: list[str]
) -> None:
    """Without it, what the function gives differs from build to build."""
    found = mutants(f"int f(int a) {{\n{body}\n}}", "delete")
    assert [mutant.after for mutant in found] == deleted


def test_the_end_of_main_is_a_return_of_0(mutants: Make) -> None:
    (mutant,) = mutants("int main(void) { return 0; }", "delete")
    assert mutant.after == "int main(void) { ; }"


@pytest.mark.parametrize(
    "text",
    [
        "#define N (1 + 2)\n",
        "#if A > 1\n#endif\n",
        'char *s = "1 + 2";\n',
        "int f(void) __attribute__((aligned(8)));\n",
        "int n = 1 + 2; // pragma: no mutate\n",
        "/* 1 + 2 */\n",
    ],
)
def test_what_is_no_code_stays(mutants: Make, text: str) -> None:
    assert mutants(text) == []


def test_a_mutant_keeps_its_id_when_its_line_moves(mutants: Make) -> None:
    text = "int f(int a) { return a + 1; }\n"
    assert [m.id for m in mutants(text)] == [m.id for m in mutants(f"\n\n{text}")]


def test_two_equal_statements_have_mutants_of_their_own(mutants: Make) -> None:
    found = mutants("void f(int a) {\na++;\na++;\n}", "increments")
    assert [mutant.line for mutant in found] == [2, 3]
    assert found[0].id != found[1].id


def test_a_file_that_is_not_utf_8_is_mutated(tmp_path: Path) -> None:
    path = tmp_path / "old.c"
    path.write_bytes(b"int n = 5; /* caf\xe9 */\n")
    assert "int n = 6; /* caf\xe9 */" in [mutant.after for mutant in c_mutants_of(path)]


def test_only_c_files_are_mutated(tmp_path: Path) -> None:
    (tmp_path / "prog.h").write_text("int n = 1;")
    with pytest.raises(UserError, match=r"made of C files \(.c\)"):
        c_mutants_of(tmp_path / "prog.h")
