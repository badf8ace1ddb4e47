"""What reaches a terminal: text that others wrote as escapes, and what swarmtest draws itself."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from swarmtest.core.formatting import csv_row, printable
from swarmtest.ui.terminal.output import PrintableStream, show_status, unescaped

MACHINE = """
from swarmtest import Machine, action

class Disk(Machine):
    steps = 20
    def start(self): self.n = 0
    @action
    def write(self):
        self.n += 1
        if self.n > 6: raise RuntimeError("full \\x1b]0;owned\\x07[bold]")
    @action
    def sync(self): self.n = 0
"""


@pytest.fixture
def below() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


def test_control_characters_are_written_as_escapes(below: io.TextIOWrapper) -> None:
    stream = PrintableStream(below)
    text = "a\x1b[31m\r\x07\x7f\x9b\u202eb\tü\n"
    assert stream.write(text) == len(text)
    print("c\x1bd", file=stream)
    stream.writelines(["e\x08f\n"])
    assert written(stream) == ("a\\x1b[31m\\r\\x07\\u007f\\u009b\\u202eb\tü\nc\\x1bd\ne\\x08f\n")


def test_bytes_and_what_is_drawn_keep_their_order(below: io.TextIOWrapper) -> None:
    stream = PrintableStream(below)
    stream.write("first ")
    show_status("half\x1bway\n", stream)
    stream.write("second")
    stream.buffer.write(b"\x1b\x00")
    assert written(stream) == "first \r\x1b[Khalf\\x1bwaysecond\x1b\x00"
    assert unescaped(stream) is below


def test_a_stream_is_still_that_of_a_terminal() -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="ascii") as below:
        stream = PrintableStream(below)
        assert (stream.isatty(), stream.fileno(), stream.line_buffering) == (True, theirs, True)
        print("grün", file=stream)
        assert os.read(ours, 100) == b"gr?n\r\n"
        stream.detach()
    os.close(ours)


@pytest.mark.parametrize("text", ["=1", "@a", "+1 (2)", "-1+f(2)", "\t=1", "\r=1", "\n=1", " =1"])
def test_a_cell_that_begins_like_a_formula_gets_an_apostrophe(text: str) -> None:
    assert csv_row([text]) == ["'" + printable(text)]


@pytest.mark.parametrize("value", ["-O2", "--level=3", "-1.5", "+1", "a=b", "", -1, 0.5, None])
def test_other_cells_stay_as_they_are(value: object) -> None:
    assert csv_row([value]) == [value]


def on_a_terminal(place: Path, *arguments: object) -> str:
    """Everything that a command sends to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "swarmtest", *map(str, arguments)]
    env = os.environ | {"COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(
        command, cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return shown.decode()


def test_progress_is_drawn_and_messages_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "disk.py").write_text(MACHINE)
    shown = on_a_terminal(tmp_path, "run", "disk.py", "-n", 400, "-j", 1)
    assert "\x1b]0;owned" not in shown
    assert "\\x1b]0;owned\\x07[bold]" in shown
    assert "\x1b[2K" in shown  # the live line
    assert "\\x1b[" not in shown
    assert "\\r" not in shown
    reduced = on_a_terminal(tmp_path, "reduce", "1#0")
    assert "\\r" not in reduced
    assert "\r\x1b[K" in reduced


def test_bytes_leave_unchanged(tmp_path: Path, start) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "disk.py").write_text(MACHINE)
    start("run", "disk.py", "-n", 20, cwd=tmp_path).communicate(timeout=120)
    command = [sys.executable, "-P", "-m", "swarmtest", "export", "-f", "parquet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert done.stdout.startswith(b"PAR1")
    assert done.stdout.endswith(b"PAR1")
    named = subprocess.run([*command, "-o", "a.parquet"], cwd=tmp_path, timeout=120, check=True)
    assert named.returncode == 0
    assert (tmp_path / "a.parquet").read_bytes() == done.stdout
