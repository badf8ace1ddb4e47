"""Writing figures for a paper: one column wide, with vector text, and readable in grey."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError
from swarmtest.ui.report.figures import Figure
from swarmtest.ui.report.page import ReportPage

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FORMATS = ("pdf", "png", "svg")
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a feature may be called $x
    "pdf.fonttype": 42,  # many journals refuse Type 3
    "svg.hashsalt": "swarmtest",
    "savefig.dpi": 300,
}


def require_matplotlib() -> None:
    """Raise `UserError` if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise UserError("--figures needs matplotlib: pip install 'swarmtest[figures]'")


def drawing_of(figure: Figure) -> Drawing:
    """Return a figure of the report as a figure of matplotlib, in the style of a paper."""
    if find_spec("matplotlib") is None:
        raise UserError("this needs matplotlib: pip install 'swarmtest[figures]'; .svg does not")
    with _style():
        try:
            drawing = draw(figure)
        except TypeError:
            raise UserError(f"{figure.title!r} is drawn as .svg only") from None
        drawing.draw_without_rendering()
        return drawing


def write_figures(page: ReportPage, directory: Path) -> list[Path]:
    """Write every figure in all formats with its data, and the tables that belong to no figure."""
    require_matplotlib()
    written: list[Path] = []
    try:
        for figure in page.figures():
            written += write_figure(figure, directory)
        for name, text in page.data().items():
            written.append(_write_csv(directory / f"{name}.csv", text))
    except OSError as error:
        raise UserError(f"--figures {directory}: cannot be written: {error.strerror}") from None
    return written


def write_figure(figure: Figure, directory: Path) -> list[Path]:
    """Write one figure in all formats, with its data."""
    written = [_write_csv(directory / f"{figure.name}.csv", figure.to_csv())]
    with _style():
        drawing = draw(figure)
        drawing.draw_without_rendering()
        drawing.set_layout_engine("none")  # lay it out once, not once per format
        for ending in FORMATS:
            path = directory / f"{figure.name}.{ending}"
            metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(ending)
            drawing.savefig(path, bbox_inches="tight", pad_inches=0.02, metadata=metadata)
            written.append(path)
    return written


def _write_csv(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def draw(figure: Figure) -> Drawing:
    """Draw a figure with matplotlib."""
    from swarmtest.ui.report import matplotlib_drawing as paper_drawing

    return paper_drawing.draw(figure)


@contextlib.contextmanager
def _style() -> Iterator[None]:
    import logging

    import matplotlib

    # A missing font is replaced by the next one of the list, which needs no warning.
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            yield
    finally:
        log.setLevel(level)
