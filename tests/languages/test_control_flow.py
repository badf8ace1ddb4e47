"""The control-flow graph of Python: which lines come before which, statement by statement."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from textwrap import dedent

import pytest

from swarmtest.coverage.weaving.syntax import executable_lines
from swarmtest.languages.python.control_flow import dominators_by_function, flows_of

# Each line that is asked about ends in "# <", those that dominate it in "# !".
PROGRAMS = {
    "if": """
        def f(x):
            a()  # !
            if x:  # !
                b()
            elif y:
                c()
            else:
                d()
            e()  # <
    """,
    "elif": """
        def f(x):
            if x:  # !
                b()
            elif y:  # !
                c()
            else:
                d()  # <
    """,
    "after a return in one arm": """
        def f(x):
            if x:  # !
                b()  # !
            else:
                return
            e()  # <
    """,
    "an assert is passed": """
        def f(x):
            assert x  # !
            e()  # <
    """,
    "loop": """
        def f(x):
            for i in x:  # !
                b()
                if i:
                    break
                c()
            e()  # <
    """,
    "else of a loop": """
        def f(x):
            for i in x:  # !
                if i:
                    break
            else:
                e()  # <
    """,
    "after a loop whose else leaves": """
        def f(x):
            while x:  # !
                a()  # !
                if x:  # !
                    break  # !
            else:
                return
            e()  # <
    """,
    "endless loop": """
        def f(x):
            while True:  # !
                a()  # !
                if x:  # !
                    b()  # !
                    break  # !
                c()
            e()  # <
    """,
    "continue": """
        def f(x):
            for i in x:  # !
                if i:  # !
                    continue
                e()  # <
    """,
    "except": """
        def f(x):
            try:  # !
                a()  # !
                b()
            except A:  # !
                c()
            except B:  # !
                e()  # <
    """,
    "else of try": """
        def f(x):
            try:  # !
                a()  # !
                b()  # !
            except A:
                return
            else:
                e()  # <
    """,
    "after a try": """
        def f(x):
            try:  # !
                a()  # !
                b()
            except A:
                c()
            e()  # <
    """,
    "finally": """
        def f(x):
            try:  # !
                a()  # !
                if x:
                    return
                b()
            finally:
                e()  # <
    """,
    "after a finally only those come that did not leave": """
        def f(x):
            try:  # !
                a()  # !
                if x:  # !
                    return
                b()  # !
            finally:
                c()  # !
            e()  # <
    """,
    "a break through finally": """
        def f(x):
            while True:  # !
                try:  # !
                    a()  # !
                    if x:  # !
                        break  # !
                finally:
                    c()  # !
            e()  # <
    """,
    "a context may swallow": """
        def f(x):
            with x:  # !
                a()  # !
                b()
            e()  # <
    """,
    "a second context may fail under the first": """
        def f(x):
            with x, y:  # !
                a()
            e()  # <
    """,
    "match": """
        def f(x):
            match x:  # !
                case 1:  # !
                    a()
                case 2 if y:  # !
                    b()
                case _:  # !
                    e()  # <
    """,
    "after a match where one case always fits": """
        def f(x):
            match x:  # !
                case 1:  # !
                    return
                case _:  # !
                    b()  # !
            e()  # <
    """,
    "group of exceptions": """
        def f(x):
            try:  # !
                a()  # !
            except* A:  # !
                b()
            except* B:  # !
                e()  # <
    """,
    "class body": """
        def f(x):
            a()  # !
            class C:  # !
                y = 1  # !
                def g(self):  # !
                    h()
            e()  # <
    """,
    "comprehensions and conditional expressions are part of their line": """
        def f(x):
            a = [g(i) for i in x if i]  # !
            b = x if a else (  # !
                g(3)
            )
            e()  # <
    """,
    "generator": """
        async def f(x):
            async for i in x:  # !
                yield i  # !
                await g()  # !
                e()  # <
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_dominators_are_the_marked_lines(name: str) -> None:
    text = dedent(PROGRAMS[name]).lstrip("\n")
    lines = text.splitlines()
    (asked,) = [n for n, line in enumerate(lines, 1) if line.endswith("# <")]
    marked = {n for n, line in enumerate(lines, 1) if line.endswith("# !")}
    assert set(dominators_by_function(text, asked)[0]) == marked


def test_the_nearest_dominator_comes_first() -> None:
    text = dedent(PROGRAMS["a break through finally"]).lstrip("\n")
    assert dominators_by_function(text, 9)[0] == [8, 6, 5, 4, 3, 2]


def test_a_chain_of_900_elifs_is_no_problem() -> None:
    text = "def f(x):\n    if x == 0:\n        a()\n"
    text += "".join(f"    elif x == {i}:\n        a()\n" for i in range(1, 900))
    flow = flows_of(text).graphs[1]
    assert max(flow.lines) == 1801


def test_every_line_with_code_in_the_standard_library_is_a_node() -> None:
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(root.glob("*.py"))[:80] + sorted(root.glob("asyncio/*.py"))
    for file in files:
        text = file.read_text(encoding="utf-8")
        flows = flows_of.__wrapped__(text)
        code = compile(text, str(file), "exec", dont_inherit=True)
        nodes = {line for graph in flows.graphs for line in graph.lines} - {0}
        assert nodes == executable_lines(code, flows.starts), file
    assert len(files) > 80
