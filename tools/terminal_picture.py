"""Draw what a command prints in a terminal, as an SVG file: the picture at the top of README.md.

    python tools/terminal_picture.py              draw docs/pictures/terminal.svg again
    python tools/terminal_picture.py FILE.svg --in DIRECTORY COMMAND...

The commands are run, in a terminal of 96 columns and in a copy of the directory, so that the
picture shows what really happens. The first block of README.md that is a file is in the copy, too.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "terminal.svg"
COMMANDS = ("swarmtest run ordered_set.py --tests 300 --quiet",)
COLUMNS = 96
PYTHON_FILE = re.compile(r"```python\n# file: (\S+)\n(.*?)```", re.DOTALL)
SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own format without the fonts that it fetches: a picture must not need the network."""


def main() -> None:
    """Run the commands, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path, nargs="?", default=PICTURE, metavar="FILE.svg")
    parser.add_argument("commands", nargs="*", default=COMMANDS, metavar="COMMAND")
    parser.add_argument("--in", dest="directory", type=Path, metavar="DIRECTORY")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "demo"
        if options.directory is None:
            place.mkdir()
            write_files(place, (ROOT / "README.md").read_text())
        else:
            shutil.copytree(options.directory, place)
        options.output.write_text(picture(list(options.commands), place))
    print(options.output)


def write_files(place: Path, page: str) -> None:
    """Write the Python files that a page shows."""
    for name, text in PYTHON_FILE.findall(page):
        (place / name).write_text(text)


def picture(commands: list[str], place: Path) -> str:
    """Return the commands and what they print as an SVG file."""
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
    )
    for command in commands:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        shown = Text.from_ansi(in_terminal(command, place))
        emphasise(shown)
        console.print(shown)
    return console.export_svg(title="swarmtest", code_format=SVG, unique_id="swarmtest")


def emphasise(text: Text) -> None:
    """Make the parts that a reader should see first bold or coloured."""
    text.highlight_regex(r"(?m)^(new )?fault [0-9a-f]{8}", "bold red")
    text.highlight_regex(r"(?m)^  (line|values|triggers|suppressors|by experiment|replay):", "cyan")


def in_terminal(command: str, place: Path) -> str:
    """Run a command in a terminal, and return what it prints."""
    ours, theirs = pty.openpty()
    size = struct.pack("HHHH", 50, COLUMNS, 0, 0)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    program, *words = shlex.split(command)
    line = [str(Path(sys.executable).with_name(program)), *words]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "SWARMTEST_STORE")}
    with subprocess.Popen(
        line, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        received = b""
        try:
            while part := os.read(ours, 1 << 16):
                received += part
        except OSError:  # Linux: the command has ended
            pass
    os.close(ours)
    return received.decode().replace("\r\n", "\n")


if __name__ == "__main__":
    main()
