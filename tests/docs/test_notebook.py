"""The notebooks of the documentation: their cells run, in order, in one process."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_every_cell_of_a_notebook_runs_and_shows_something(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.read_text())["cells"]
    names: dict[str, Any] = {"__name__": "__notebook__"}
    shown = []
    for cell in cells:
        assert not cell.get("outputs"), "a notebook is kept without its outputs"
        if cell["cell_type"] == "code":
            shown.append(run_cell("".join(cell["source"]), names))
    assert sum(bool(html) for html in shown) >= 6


def run_cell(source: str, names: dict[str, Any]) -> str:
    """Run a cell, and return the HTML of its last expression, as a kernel would show it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if last is None:
        return ""
    assert isinstance(last, ast.Expr)
    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    return str(value._repr_html_()) if hasattr(value, "_repr_html_") else ""
