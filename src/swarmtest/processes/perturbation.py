"""Perturbed memory: programs that find rubbish in memory that is not theirs.

A program that reads memory after freeing it, or before writing it, often finds what it expects
there, depending on all that was allocated before. So its failing test cannot be made smaller. With
the variable MALLOC_PERTURB_, glibc fills what is allocated and what is freed with fixed bytes: the
read goes wrong at once, in the smallest test. It does not fill small blocks that it keeps for the
thread that freed them, so it has to keep none. Sanitizers see the same without it.

A test is reduced, replayed and explained like that, if it still shows its fault.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from swarmtest.core.result import Fault, Result

VARIABLE = "MALLOC_PERTURB_"
_TUNABLES = "GLIBC_TUNABLES"
_BYTE = "165"
_NO_CACHE = "glibc.malloc.tcache_count=0"
_runs_programs = False


def note_program() -> None:
    """Remember that tests of this process run programs."""
    global _runs_programs
    _runs_programs = True


def perturbation() -> dict[str, str]:
    """Return the variable as this process has it, for a program; empty if it has none."""
    if VARIABLE not in os.environ:
        return {}
    return {name: os.environ[name] for name in (VARIABLE, _TUNABLES) if name in os.environ}


@contextlib.contextmanager
def perturbed_memory(shows: Callable[[], bool] = lambda: True) -> Iterator[bool]:
    """Perturb the memory of programs that are started meanwhile, also by forks of this process.

    `shows` says whether a test still shows its fault like that; if not, memory is as usual. The
    value is what it said. Nothing happens, and it is not asked, if no test runs programs, or if the
    user has set the variable.

    >>> note_program()
    >>> with perturbed_memory():
    ...     perturbation()["MALLOC_PERTURB_"]
    '165'
    >>> with perturbed_memory(lambda: False):
    ...     perturbation()
    {}
    """
    if not _runs_programs or VARIABLE in os.environ:
        yield False
        return
    tunables = os.environ.get(_TUNABLES)

    def reset() -> None:
        os.environ.pop(VARIABLE, None)
        if tunables is None:
            os.environ.pop(_TUNABLES, None)
        else:
            os.environ[_TUNABLES] = tunables

    os.environ[VARIABLE] = _BYTE
    os.environ[_TUNABLES] = ":".join(filter(None, (tunables, _NO_CACHE)))
    try:
        if not shows():
            reset()
        yield VARIABLE in os.environ
    finally:
        reset()


def replayed(run: Callable[[], Result], is_it: Callable[[Fault], bool]) -> Result:
    """Return the result of a run with perturbed memory, or of a usual one.

    The usual one counts if the other shows no fault that `is_it` accepts.
    """
    result: Result | None = None

    def shows() -> bool:
        nonlocal result
        result = run()
        return result.fault is not None and is_it(result.fault)

    with perturbed_memory(shows) as perturbed:
        return result if perturbed and result is not None else run()
