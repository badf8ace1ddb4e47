"""Results in Python: as text, as a table in a notebook, as a data frame, and as a plot.

A result derives from `Displayed` and says what its tables are. A notebook shows them, ``str``
prints them, and `Displayed.to_pandas` turns the data into a data frame. `Displayed.plot` draws the
figure that the report shows, without any library.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

MOST_ROWS = 40
"""The most rows of a table that a notebook shows; a data frame has them all."""
_MOST_LETTERS = 90


@dataclass(frozen=True)
class ShownTable:
    """A table to look at.

    >>> print(ShownTable("Faults", ("fault", "tests"), [("KeyError: 'a'", 12)]))
    Faults
    fault          tests
    KeyError: 'a'     12
    """

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    total: int | None = None
    """How many rows there are, if `rows` has only the first of them."""

    @property
    def _texts(self) -> list[tuple[str, ...]]:
        return [tuple(map(_text, row)) for row in self.rows[:MOST_ROWS]]

    @property
    def _more(self) -> str:
        total = len(self.rows) if self.total is None else self.total
        left = total - min(len(self.rows), MOST_ROWS)
        return (
            f"{left:,} more {'row' if left == 1 else 'rows'}: to_pandas() has all" if left else ""
        )

    def _is_number(self, column: int) -> bool:
        values = [row[column] for row in self.rows if row[column] is not None]
        return bool(values) and all(isinstance(value, int | float) for value in values)

    def __str__(self) -> str:
        texts = [tuple(_cut(cell) for cell in row) for row in self._texts]
        widths = [max(map(len, column)) for column in zip(self.head, *texts, strict=True)]
        lines = [self.title] if self.title else []
        for row in (self.head, *texts):
            cells = [
                f"{cell:>{width}}" if self._is_number(column) else f"{cell:{width}}"
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, *filter(None, [self._more])])

    def _repr_html_(self) -> str:
        def cells(tag: str, row: Sequence[str]) -> str:
            return "".join(
                f'<{tag} style="text-align:{"right" if self._is_number(column) else "left"}">'
                f"{escape(_visible(cell))}</{tag}>"
                for column, cell in enumerate(row)
            )

        rows = "".join(f"<tr>{cells('td', row)}</tr>" for row in self._texts)
        more = f"<p><small>{escape(self._more)}</small></p>" if self._more else ""
        title = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        head = f"<thead><tr>{cells('th', self.head)}</tr></thead>"
        return f"{title}<table>{head}<tbody>{rows}</tbody></table>{more}"


class Displayed:
    """A result that can be printed, shown in a notebook, plotted, and turned into a data frame."""

    def shown_title(self) -> str:
        """Return what it is, in a sentence or two."""
        raise NotImplementedError

    def shown_tables(self) -> list[ShownTable]:
        """Return the tables to look at."""
        raise NotImplementedError

    def data_columns(self) -> Mapping[str, Any]:
        """Return all of its data, as columns of equal length."""
        raise NotImplementedError

    def __str__(self) -> str:
        parts = [self.shown_title(), *map(str, self.shown_tables())]
        return "\n\n".join(filter(None, parts))

    def _repr_html_(self) -> str:
        title = escape(_visible(self.shown_title()))
        tables = "".join(table._repr_html_() for table in self.shown_tables())
        return f"<p>{title}</p>{tables}" if title else tables

    def to_pandas(self) -> DataFrame:
        """Return the data as a data frame; this needs pandas."""
        if importlib.util.find_spec("pandas") is None:
            raise UserError("to_pandas() needs pandas: pip install pandas")
        return importlib.import_module("pandas").DataFrame(dict(self.data_columns()))

    def plot(self, *about: Any, **options: Any) -> Any:
        """Return the figure that the report has for it, which a notebook shows.

        The figure has `save`, which writes SVG, PDF or PNG by the ending of the name. What a
        result accepts as arguments is in `docs/notebooks.md`.
        """
        # What is shown is above what is computed: the drawing is found when it is needed.
        return importlib.import_module("swarmtest.ui.report.plots").plot(self, *about, **options)


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _visible(text: str) -> str:
    """Return a text whose invisible characters are shown as codes."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def _cut(text: str) -> str:
    line = _visible(text.replace("\n", " "))
    return line if len(line) <= _MOST_LETTERS else f"{line[: _MOST_LETTERS - 1]}…"


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which can show HTML.

    >>> in_notebook()
    False
    """
    import sys

    ipython = sys.modules.get("IPython")  # never imported just to ask
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None
