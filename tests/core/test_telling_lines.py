"""The line of a program's output that says why it failed is found, whatever is around it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from swarmtest.core.messages.telling_lines import telling_line

CASES = {
    "gcc, a header": (
        "test.c:10:10: fatal error: csmith.h: No such file or directory\n"
        '   10 | #include "csmith.h"\n'
        "      |          ^~~~~~~~~~\n"
        "compilation terminated.\n",
        "test.c:10:10: fatal error: csmith.h: No such file or directory",
    ),
    "clang, a header": (
        "t.c:1:10: fatal error: 'csmith.h' file not found\n"
        '#include "csmith.h"\n'
        "         ^~~~~~~~~~\n"
        "1 error generated.\n",
        "t.c:1:10: fatal error: 'csmith.h' file not found",
    ),
    "gcc, an error in a header that is included": (
        "In file included from test.c:3:\n"
        "lib.h: In function ‘half’:\n"
        "lib.h:7:3: warning: implicit declaration of function ‘error’\n"
        "    7 |   error(1);\n"
        "      |   ^~~~~\n"
        "lib.h:8:10: error: ‘y’ undeclared (first use in this function)\n"
        "lib.h:9:10: error: expected ‘;’ before ‘}’ token\n"
        "lib.h:8:10: note: each undeclared identifier is reported only once\n",
        "lib.h:8:10: error: ‘y’ undeclared (first use in this function)",
    ),
    "a linker": (
        "/usr/bin/ld: /tmp/ccQ3xb.o: in function `main':\n"
        "t.c:(.text+0x9): undefined reference to `nowhere'\n"
        "collect2: error: ld returned 1 exit status\n",
        "t.c:(.text+0x9): undefined reference to `nowhere'",
    ),
    "a linker without a library": (
        "/usr/bin/ld: cannot find -lz: No such file or directory\n"
        "clang: error: linker command failed with exit code 1 (use -v to see invocation)\n",
        "/usr/bin/ld: cannot find -lz: No such file or directory",
    ),
    "dash": ("sh: 1: csmyth: not found\n", "sh: 1: csmyth: not found"),
    "make": (
        "cc -c a.c\na.c:1:1: error: unknown type name ‘inc’\nmake: *** [Makefile:2: a.o] Error 1\n",
        "a.c:1:1: error: unknown type name ‘inc’",
    ),
    "rustc": (
        "warning: unused variable: `x`\n"
        "error[E0425]: cannot find value `y` in this scope\n"
        " --> a.rs:3:5\n"
        "error: aborting due to previous error; 1 warning emitted\n"
        "For more information about this error, try `rustc --explain E0425`.\n",
        "error[E0425]: cannot find value `y` in this scope",
    ),
    "argparse": (
        "usage: gen.py [-h] [--error-rate N]\ngen.py: error: unrecognized arguments: --x\n",
        "gen.py: error: unrecognized arguments: --x",
    ),
    "a traceback": (
        "Traceback (most recent call last):\n"
        '  File "gen.py", line 3, in <module>\n'
        '    raise ValueError("error: no loops")\n'
        "ValueError: no loops\n",
        "ValueError: no loops",
    ),
    "a traceback while another was handled": (
        "Traceback (most recent call last):\n"
        '  File "gen.py", line 3, in <module>\n'
        "    open(path)\n"
        "FileNotFoundError: [Errno 2] No such file or directory: 'a.cfg'\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "gen.py", line 5, in <module>\n'
        "    raise SystemError\n"
        "Stop: give --config\n",
        "Stop: give --config",
    ),
    "a program that complains and says goodbye": (
        "reading\ncannot open the display\nbye\n",
        "cannot open the display",
    ),
    "a program with last words": ("reading a.txt\nno more input\n\n", "no more input"),
    "colours": (
        "\x1b[1mt.c:1:1: \x1b[31merror: \x1b[0mbad\n1 error generated.",
        "t.c:1:1: error: bad",
    ),
    "nothing but a summary": ("compilation terminated.\n", "compilation terminated."),
    "nothing": ("\n \n", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_the_line_that_tells_most_is_found(case: str) -> None:
    output, line = CASES[case]
    assert telling_line(output) == line


def test_standard_output_counts_only_where_it_tells_of_an_error() -> None:
    assert telling_line("", "12\n13\n") == ""
    assert telling_line("stopped\n", "12\n13\n") == "stopped"
    assert telling_line("stopped\n", "x.c:3: error: bad\n13\n") == "x.c:3: error: bad"
    assert telling_line("y.c:1: error: worse\n", "x.c:3: error: bad\n") == "y.c:1: error: worse"


def test_megabytes_without_a_line_break_take_no_time() -> None:
    assert len(telling_line("error " * 200_000)) <= 2_000
    assert telling_line("~^ " * 300_000 + "x")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('#include "not_here.h"\nint main(void) { return 0; }\n', "not_here.h"),
        ("int main(void) { return nowhere; }\n", "undeclared"),
        ("int f(void);\nint main(void) { return f(); }\n", "undefined reference to"),
    ],
)
def test_what_compilers_print_here_and_now(
    compiler: str, source: str, told: str, tmp_path: Path
) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}: apt-get install {compiler}")
    (tmp_path / "t.c").write_text(source)
    words = [compiler, "-w", "t.c", "-o", "t"]
    built = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode
    assert told in telling_line(built.stderr)


def test_what_python_prints_here_and_now() -> None:
    for program, told in {
        "import not_here": "ModuleNotFoundError: No module named 'not_here'",
        "try: {}[1]\nexcept KeyError: raise OSError('gone')": "OSError: gone",
        "print(": "SyntaxError: '(' was never closed",
    }.items():
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert telling_line(ran.stderr) == told
