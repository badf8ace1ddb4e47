"""Functions of C and C++: found, and read well enough to tell what comes before a line."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

pytest.importorskip("tree_sitter_cpp", reason="pip install 'swarmtest[c]'")

from swarmtest.core.errors import UserError
from swarmtest.languages.c import syntax_tree
from swarmtest.languages.c.functions import call_sites, function_at, functions_of, lines_before
from swarmtest.languages.places import from_line

# The line that is asked about ends in "// <", those that come before it in "// !".
FUNCTIONS = {
    "if and else": """
        int f(int x) { // !
            int a = 1; // !
            if (x) { // !
                a = 2;
            } else if (a) // !
                a = 3;
            else
                a = 4; // <
        }
    """,
    "a block that was closed is no way to go": """
        int f(int x) { // !
            if (x) { // !
                a();
            }
            b(); // <
        }
    """,
    "loops": """
        int f(int x) { // !
            for (int i = 0; i < x; i++) { // !
                a(); // !
                if (i) // !
                    continue;
                b(); // <
            }
        }
    """,
    "an endless loop has no code of its own": """
        int f(int x) { // !
            for (;;) {
                a(); // !
                if (x) // !
                    break; // !
            }
            b(); // <
        }
    """,
    "do runs once": """
        int f(int x) { // !
            do {
                a(); // !
            } while (x); // !
            b(); // <
        }
    """,
    "case": """
        int f(int x) { // !
            a(); // !
            switch (x) { // !
            case 1:
                b();
                break;
            case 2: case 3: // !
                c(); // <
                break;
            default:
                d();
            }
        }
    """,
    "a case falls through": """
        int f(int x) { // !
            switch (x) { // !
            case 1:
                b();
            default: // !
                c(); // <
            }
        }
    """,
    "after a label only what comes before every jump to it": """
        int f(int x) { // !
            a(); // !
            if (x) // !
                goto out;
            b();
        out:
            c(); // <
        }
    """,
    "a macro may jump to a label": """
        int f(int x) { // !
            CHECK(x); // !
            b();
        out:
            c(); // <
        }
    """,
    "strings, comments and directives": """
        int f(int x) { // !
            puts("} /* "); // !
            char c = '}'; /* } */ // !
        #define CLOSE }
            b(); // <
        }
    """,
    "directives are alternatives": """
        int f(int x) { // !
        #ifdef FAST
            a();
        #else
            b();
        #endif
            c(); // <
        }
    """,
    "a brace in each branch": """
        int f(int x) { // !
        #ifdef FAST
            if (x) { // !
        #else
            if (!x) {
        #endif
                b(); // <
            }
        }
    """,
    "branches after an if without braces": """
        int f(int x) { // !
            if (x) // !
        #ifdef FAST
                a();
        #else
                b();
        #endif
            c(); // <
        }
    """,
    "an else that is not always there": """
        int f(int x) { // !
        #ifdef FAST
            if (x) // !
                a();
            else
        #endif
                b(); // <
        }
    """,
    "a label at the end of a branch": """
        int f(int x) { // !
        #ifdef FAST
            if (x)
                goto done;
            a();
        done:
        #endif
            b(); // <
        }
    """,
    "comments in the definition of a macro": """
        int f(int x) { // !
        #define BODY \\
            { \\
                /* over \\
                   lines */ \\
            a(); \\
            }
            b(); // <
        }
    """,
    "an operator as an argument of a macro": """
        int f(int x) { // !
            x = intop(+, x, 1); // !
            b(); // <
        }
    """,
    "a macro with a block is a loop": """
        int f(list *x) { // !
            LIST_FOREACH(one, x) { // !
                a();
            }
            b(); // <
        }
    """,
    "catch": """
        int f(int x) { // !
            try {
                a(); // !
                b();
            } catch (const Error &e) { // !
                c(); // <
            }
        }
    """,
}


def _marked(text: str) -> tuple[str, int, set[int]]:
    text = dedent(text).lstrip("\n")
    lines = text.splitlines()
    (asked,) = [n for n, line in enumerate(lines, 1) if line.endswith("// <")]
    return text, asked, {n for n, line in enumerate(lines, 1) if line.endswith("// !")}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_marked_lines_come_before(name: str) -> None:
    text, asked, marked = _marked(FUNCTIONS[name])
    braces = {n for n, line in enumerate(text.splitlines(), 1) if line.strip().startswith("}")}
    found = {line for lines in lines_before(text, asked) for line in lines}
    assert found - braces == marked - braces
    assert found >= marked


def test_the_nearest_comes_first() -> None:
    text, asked, _ = _marked(FUNCTIONS["loops"])
    assert lines_before(text, asked)[0] == [4]


def test_a_statement_over_several_lines_offers_all_of_them() -> None:
    text = "int f(int x) {\n  g(x,\n    x);\n  return x;\n}\n"
    assert lines_before(text, 4) == [[2, 3], [1]]
    assert lines_before(text, 3) == [[2], [1]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("static int f(int x)\n{\n  return x;\n}\nint g(void);\nint h() {}\n", ["f", "h"]),
        ("int ZEXPORT f(a, b)\n  int a;\n  char *b;\n{\n  return a;\n}\n", ["f"]),
        ("struct s { int a; };\nint t[] = { 1, 2 };\nenum e { A };\nint f() {}\n", ["f"]),
        ("__attribute__((noreturn)) void f(int a) { for (;;); }\n", ["f"]),
        ("namespace n {\nclass C {\n  int f() const { return 1; }\n};\n}\n", ["C::f"]),
        ("C::C(int x) : a{x}, b(x) {\n  g();\n}\nvoid C::h() {}\n", ["C::C", "C::h"]),
        ('extern "C" {\nint f(void) { return 1; }\n}\n', ["f"]),
        ("#if 0\nint f() {\n#endif\nint g() {}\n", ["g"]),
        ("int f() { if (x) { \n", ["f"]),
        ("}}}((( f() {", []),
        ("LUA_API lua_CFunction f (lua_State *L) {\n  return 0;\n}\n", ["f"]),
        ("API INLINE void f(int a) {\n}\nl_inline struct s *g(int a) {\n}\n", ["f", "g"]),
        (
            "static void PRINTF(1,2)\nf(const char *a, ...)\n{\n  g();\n}\nint h(void) {}\n",
            ["f", "h"],
        ),
        ("#ifdef A\nvoid *f(q, n)\n  void *q;\n  int n;\n{\n  return q;\n}\n#endif\n", ["f"]),
        ("#ifdef A\nint f(int a)\n#else\nint f(long a)\n#endif\n{\n  return a;\n}\n", ["f"]),
        ("TEST(cart, add)\n{\n  f();\n}\nMODULE(cart) {\n}\n", ["TEST", "MODULE"]),
        ("struct s f(void) { }\nAPI struct t { int a; } *b;\nint g(void) {}\n", ["f", "g"]),
    ],
)
def test_functions_are_found_by_their_names(text: str, names: list[str]) -> None:
    assert [function.name for function in functions_of(text)][: len(names)] == names


def test_functions_around_an_error_are_found() -> None:
    text = dedent("""\
        int f(void)
        {
          return 1;
        }
        int broken(void)
        {
          if (x) {
            g(
        }
        int h(void)
        {
          return 2;
        }
        int @@ what( { )
        }
        int k(void)
        {
          return 3;
        }
    """)
    found = {function.name: (function.first, function.last) for function in functions_of(text)}
    assert found["f"] == (1, 4)
    assert found["h"] == (10, 13)
    assert found["k"] == (16, 19)
    assert lines_before(text, 12) == [[10, 11]]


def test_a_deeply_nested_file_is_read() -> None:
    chain = " else ".join(f"if (x == {n}) y = {n};" for n in range(2000))
    total = " + ".join("x" for _ in range(3000))
    text = f"int f(int x) {{\n  {chain}\n  return {total};\n}}\n"
    assert lines_before(text, 3) == [[2], [1]]


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syntax_tree._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    (tmp_path / "p.c").write_text("int without_the_extra(void) {\n  return 1;\n}\n")
    with pytest.raises(UserError, match=r"^reading C .*pip install 'swarmtest\[c\]'$"):
        from_line(f"{tmp_path}/p.c:2")


def test_calls_are_found_by_name_and_pointers_count() -> None:
    text = dedent("""\
        static int f(int x) { return x; }
        int g(void) {
          return f(1);
        }
        int h(struct s *s) {
          s->f = f;
          return s->other;
        }
    """)
    other = "int k(void) {\n  return f(2);\n}\n"
    sources = {"a.c": text, "b.c": other}
    assert [(s.place, s.line, s.caller) for s in call_sites("f", sources, "a.c")] == [
        ("a.c", 3, "g"),
        ("a.c", 6, "h"),
    ]
    sources["a.c"] = text.replace("static ", "")
    assert [s.place for s in call_sites("f", sources, "a.c")] == ["a.c", "a.c", "b.c"]


PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#define CHECK(x) do { if (!(x)) goto done; } while (0)
#define vmcase(x) case x:
static int depth(int n)
{
    if (n <= 0)
        return 0;
    else if (n % 3 == 0) {
        return 1 + depth(n - 3);
    }
    return depth(n - 1);
}
static int work(int x, int y)
{
    int sum = 0;
    int i;
    for (i = 0; i < x; i++) {
        if (i == y)
            continue;
        if (i > 6)
            break;
        sum += i;
    }
    CHECK(sum < 9);
    sum++;
    switch (x) {
    case 1:
        sum = 4;
        /* fall through */
    case 2:
        sum += 2;
        break;
    case 3: case 4: {
        int k = 0;
        do {
            k++;
            if (k == y)
                goto inner;
        } while (k < x);
        sum += k;
        break;
    }
    vmcase(5) {
        sum = depth(sum);
        break;
    }
    default:
        if (y)
            return 7;
    }
    for (;;) {
        sum -= 3;
        if (sum < 0)
            break;
        while (y-- > 0)
            sum--;
    }
inner:
    sum += printf("%s", y > 2 ?
                  "}" :
                  "{");
done:
    return sum;
}
int main(int argc, char **argv)
{
    (void)argc;
    return work(atoi(argv[1]), atoi(argv[2])) < 0;
}
"""


@pytest.mark.skipif(
    not (shutil.which("gcc") and shutil.which("gcov")), reason="needs gcc: apt-get install gcc"
)
def test_every_run_of_a_real_program_passes_what_is_said_to_come_before(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O0", "--coverage", "-o", "p", "p.c"], cwd=tmp_path, check=True)
    rng = random.Random(6)
    checked = 0
    for _ in range(25):
        counters = next(tmp_path.glob("*.gcda"), None)
        if counters is not None:
            counters.unlink()
        words = [str(rng.randrange(10)), str(rng.randrange(5))]
        subprocess.run(["./p", *words], cwd=tmp_path, capture_output=True)
        (counters,) = tmp_path.glob("*.gcda")
        told = subprocess.run(
            ["gcov", "--json-format", "--stdout", counters.name], cwd=tmp_path, capture_output=True
        )
        (file,) = [f for f in json.loads(told.stdout)["files"] if f["file"] == "p.c"]
        counts = {line["line_number"]: line["count"] for line in file["lines"]}
        for line in [line for line, count in counts.items() if count]:
            for lines in lines_before(PROGRAM, line):
                known = [one for one in lines if one in counts]
                assert not known or any(counts[one] for one in known), (line, lines)
                checked += bool(known)
    assert checked > 1000


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc: apt-get install gcc")
def test_lines_are_in_the_functions_that_the_compiler_says(tmp_path: Path) -> None:
    (tmp_path / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-c", "--coverage", "p.c"], cwd=tmp_path, check=True)
    told = subprocess.run(
        ["gcov", "--json-format", "--stdout", "p.gcno"], cwd=tmp_path, capture_output=True
    )
    (file,) = [f for f in json.loads(told.stdout)["files"] if f["file"] == "p.c"]
    for line in file["lines"]:
        function = function_at(PROGRAM, line["line_number"])
        assert function is not None
        assert function.name == line["function_name"]
