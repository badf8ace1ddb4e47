"""Count the files, functions and changes of folder on the way of one command.

    python tools/walk.py [--list] run examples/stack.py --tests 100 --workers 1

Runs a command of swarmtest in this process, and prints to standard error how many files of the
package had a function called, how many functions those were, and how often the folder changed from
one file to the next, in the order in which the files were first entered; also how often it was a
change to another folder at the top (from `store` to `core`, not from `store` to `store/sqlite`).
`--list` prints the files in that order. The figures show how far a reader has to go to follow a
command. What worker processes do is not counted, nor is what runs while a module is imported.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from types import CodeType, FrameType

PACKAGE = str(Path(__file__).resolve().parents[1] / "src" / "swarmtest") + os.sep
_NOT_FUNCTIONS = ("<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")


class Walk:
    """The functions of the package that one process calls, in the order of their first calls."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, None] = {}
        self._importing = 0

    def trace(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; this is the function that `sys.setprofile` calls."""
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code.co_name == "<module>":
            self._importing += 1 if event == "call" else -1
        elif event == "call" and not self._importing and code.co_filename.startswith(PACKAGE):
            self.functions[code] = None

    @property
    def files(self) -> list[str]:
        """The files with a called function, relative to the package, in order of first calls."""
        functions = [code for code in self.functions if code.co_name not in _NOT_FUNCTIONS]
        return list(dict.fromkeys(code.co_filename.removeprefix(PACKAGE) for code in functions))

    def changes_of_folder(self, top: bool = False) -> int:
        """Return how often two files that were entered one after the other lie in two folders.

        With `top`, count only the folders directly in the package.
        """
        folders = [file.split(os.sep)[0] if top else os.path.dirname(file) for file in self.files]
        return sum(before != after for before, after in itertools.pairwise(folders))


def main() -> None:
    """Run a command, and print the figures of its walk to standard error."""
    words = sys.argv[1:]
    listed = words[:1] == ["--list"]
    sys.path.insert(0, str(Path(PACKAGE).parent))
    sys.argv = ["swarmtest", *words[listed:]]
    walk = Walk()
    process = os.getpid()
    try:
        from swarmtest.ui.cli import main as swarmtest

        sys.setprofile(walk.trace)
        swarmtest()
    finally:
        sys.setprofile(None)
        if os.getpid() == process:
            _report(walk, listed)


def _report(walk: Walk, listed: bool) -> None:
    lines = walk.files if listed else []
    changes, at_the_top = walk.changes_of_folder(), walk.changes_of_folder(top=True)
    lines.append(
        f"{len(walk.files)} files, {len(walk.functions)} functions, "
        f"{changes} changes of folder ({at_the_top} at the top)"
    )
    print(*lines, sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
