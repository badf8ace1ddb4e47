"""``swarmtest report`` and ``swarmtest dashboard``: campaigns in a browser.

The report is one HTML file, with figures for papers; the dashboard is a server with live pages.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaigns_argument,
    confidence_option,
    existing_store,
    named_campaigns,
    store_option,
    trust_option,
)
from swarmtest.ui.report.matplotlib_figures import require_matplotlib, write_figures
from swarmtest.ui.report.page import make_page, report_html
from swarmtest.ui.report.search_report import are_searches, search_html, search_page


@click.command(cls=HelpfulCommand)
@campaigns_argument
@click.option(
    "-o",
    "--output",
    shell_complete=completion.files,
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="The file to write.",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write every figure as PDF, PNG and SVG, and its data as CSV, for a paper.",
)
@click.option("--title", default="", metavar="TEXT", help="Title of the report.")
@confidence_option
@trust_option
@store_option
def report(
    campaigns: list[int],
    output: Path,
    figures: Path | None,
    title: str,
    confidence: float,
    store: str | None,
) -> None:
    """Write an HTML report: faults, triggers and suppressors, coverage.

    CAMPAIGN is a number; by default, the newest. Several campaigns of the same subject are
    analysed together. A search has its own kind of report: a picture of the
    space, and which settings matter. A report is one file that opens in any browser, without a
    network.

    \b
    swarmtest report                         the newest campaign, as report.html
    swarmtest report 1 4-9 -o stack.html     seven campaigns, compared
    swarmtest report 1 --figures figures/    also PDF, PNG, SVG and CSV
    """
    try:
        _check_writable(output)
    except OSError as error:
        raise UserError(f"{output}: {error.strerror}") from None
    if figures is not None:
        if figures in (output, Path()):
            raise UserError("--figures needs a directory that is not also the report")
        require_matplotlib()
        _make_directory(figures)
    with existing_store(store) as opened:
        numbers = named_campaigns(opened, campaigns)
        if are_searches(opened, numbers):
            if figures is not None:
                raise UserError(
                    "a search has no figures for papers: `swarmtest search plot` draws, and "
                    "`swarmtest search export` writes the data"
                )
            _write(output, search_html(search_page(opened, numbers, title)))
            _say(output)
            return
        page = make_page(opened, numbers, confidence, title)
        _write(output, report_html(page))
        _say(output)
        if figures is not None:
            _say_figures(figures, write_figures(page, figures))


def _check_writable(output: Path) -> None:
    """Raise `UserError` if the report cannot be written, before the work instead of after it."""
    if output.is_dir():
        raise UserError(f"{output} is a directory: name a file, like {output / 'report.html'}")
    if not output.parent.is_dir():
        raise UserError(f"{output}: there is no directory {output.parent}")
    target = output if output.exists() else output.parent
    if not os.access(target, os.W_OK):
        raise UserError(f"{output}: {target} is not writable")


def _make_directory(figures: Path) -> None:
    try:
        figures.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--figures {figures}: {error.strerror}") from None
    if not os.access(figures, os.W_OK):
        raise UserError(f"--figures {figures}: the directory is not writable")


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}") from None


def _say(output: Path) -> None:
    size = output.stat().st_size
    click.echo(f"{output}: {size / 1e6:.2f} MB; open it in a browser: {output.resolve().as_uri()}")


def _say_figures(directory: Path, written: Iterable[Path]) -> None:
    names = [path.suffix.removeprefix(".").upper() for path in written]
    counts = ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))
    click.echo(f"{directory}: {plural(len(names), 'file')} ({counts})")


_DASHBOARD_PACKAGES = ("starlette", "uvicorn")


@click.command(cls=HelpfulCommand)
@store_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 takes any free port.",
)
@click.option("--read-only", is_flag=True, help="Pages cannot start or stop anything.")
@click.option(
    "--token/--no-token",
    "wants_token",
    default=True,
    show_default=True,
    help="Ask visitors for the token in the address that is printed. Without one, everybody who "
    "has an account on this machine can use the dashboard as you.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in a browser.")
def dashboard(
    store: str | None,
    host: str,
    port: int,
    read_only: bool,
    wants_token: bool,
    open_browser: bool,
) -> None:
    """Watch campaigns live in a browser, and start and stop them there.

    \b
    swarmtest dashboard                  on http://127.0.0.1:8321/, with a token
    swarmtest dashboard --read-only      nothing can be started from it
    swarmtest dashboard --host 0.0.0.0   for other machines
    """
    missing = [name for name in _DASHBOARD_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"the dashboard needs {' and '.join(missing)}: pip install 'swarmtest[dashboard]'"
        )
    existing_store(store).close()
    from swarmtest.ui.dashboard.app import serve
    from swarmtest.ui.dashboard.context import DashboardSettings, is_loopback

    if not (wants_token or read_only or is_loopback(host)):
        raise UserError(
            f"--no-token with --host {host}: anyone there could run commands as you: add "
            "--read-only, or omit --no-token"
        )
    token = secrets.token_urlsafe(24) if wants_token else ""
    settings = DashboardSettings(store, host, port, read_only, token)
    serve(settings, click.echo, open_browser, sys.stdout.isatty())
