"""Written code looks as formatters leave it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from swarmtest.suite.formatting import expression, formatted

CODE = """
shop.add('tea', 1)
shop.add(name='it\\'s', other='say "no"', third=b'x', fourth='plain \\\\ text')
v3 = shop.open('a rather long name of a shop', ['tea', 'milk', 'bread'], count=12345, price=0.25)
shop.put({'a': [1, 2, 3], 'b': (1,), 'c': {4, 5}}, other={'one': 'x' * 8, 'two': float('nan')})
with suppress(ValueError, TypeError, LookupError, NotImplementedError, StopIteration):
    shop['key'] = 'value'
for _ in zip(range(1000), shop): pass
len(shop)
del shop[3]
shop[0] = [111111111, 222222222, 333333333, 444444444, 555555555, 666666666, 777777777]
'x' in shop
assert result1 == result2
"""


def test_code_stays_the_same_code() -> None:
    assert ast.dump(ast.parse("\n".join(formatted(CODE)))) == ast.dump(ast.parse(CODE))


@pytest.mark.parametrize("width", [79, 88, 120])
def test_formatters_leave_it_as_it_is(tmp_path: Path, width: int) -> None:
    file = tmp_path / "written.py"
    marker = expression(f"pytest.mark.xfail(strict=True, reason={'a long reason ' * 5!r})", "", "@")
    lines = [*marker, "def test_one():", *formatted(CODE, "    ")]
    file.write_text("\n".join(lines) + "\n")
    words = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff"]
    done = subprocess.run(
        [*words, "--line-length", str(width), str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_fits_a_line_is_on_one() -> None:
    assert formatted("f(a='x', b=[1, 2])") == ['f(a="x", b=[1, 2])']
