"""Programs with probes reach the lines and branches that coverage.py sees without, and do the same.

Each program is called several times, with several choices of kinds; every call is compared.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest
from weave_lab import Woven, differences
from weave_programs import NEWER_PROGRAMS, PROGRAMS

EXCEPTIONS_THAT_LOOK_LIKE_BRANCHES = {
    "for at the end": "run(None) branches: only with probes [], only without [(2, -1)]",
    "match with a pattern that fails": (
        "run(0) branches: only with probes [], only without [(10, -6)]"
    ),
    "a condition in one line with what it guards, that fails": (
        "run(0) branches: only with probes [], only without [(2, -1)]"
    ),
}
"""coverage.py takes an exception that leaves a function for the way out of the decision."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_seen_as_coverage_py_sees_it(name: str, tmp_path: Path) -> None:
    text, inputs = PROGRAMS[name]
    found = differences(text, inputs, tmp_path)
    known = EXCEPTIONS_THAT_LOOK_LIKE_BRANCHES.get(name)
    assert [one for one in found if known is None or not one.endswith(known)] == []
    assert bool(found) == (known is not None)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
@pytest.mark.parametrize("name", NEWER_PROGRAMS)
def test_a_program_for_newer_pythons(name: str, tmp_path: Path) -> None:
    text, inputs = NEWER_PROGRAMS[name]
    assert differences(text, inputs, tmp_path) == []


def test_a_warning_of_the_compiler_is_given_once(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        Woven("def run(x):\n    return x is 1\n", tmp_path, ("line",))
    assert [w.category for w in given] == [SyntaxWarning]
