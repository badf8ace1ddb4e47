"""What a user wants tests to reach, said in any of the ways there are."""

from swarmtest.focus.changes import from_diff
from swarmtest.focus.found import Found, Wanted
from swarmtest.focus.listed_targets import from_file
from swarmtest.focus.named_functions import from_function
from swarmtest.focus.named_places import from_line, from_lines

__all__ = [
    "Found",
    "Wanted",
    "from_diff",
    "from_file",
    "from_function",
    "from_line",
    "from_lines",
]
