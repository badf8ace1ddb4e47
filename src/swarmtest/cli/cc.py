"""``swarmtest cc``: a compiler that builds for the fast path of native coverage."""

from __future__ import annotations

import os
import sys

import click

from swarmtest.instrument.native.cc import compiler_command


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Compile C or C++ with coverage for swarmtest.",
)
@click.argument("words", metavar="COMPILER [ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def cc(words: tuple[str, ...]) -> None:
    """Compile C or C++ so that a test's coverage is collected through shared memory.

    Behaves as COMPILER (gcc or clang, also g++, clang++ or a path) with the flags for coverage, -g,
    and where it links swarmtest's runtime added. SWARMTEST is defined for the preprocessor.

    \b
    swarmtest cc gcc -O1 -o prog prog.c
    swarmtest cc clang++ -O2 -c part.cc
    CC="swarmtest cc gcc" ./configure && make
    make CC="swarmtest cc clang"
    swarmtest cc gcc -shared -fPIC -o libpart.so part.c

    With gcc, tail calls are not optimised (-fno-optimize-sibling-calls): they would hide blocks.
    The program runs as usual without swarmtest, somewhat slower.
    """
    command = compiler_command(words)
    sys.stdout.flush()
    os.execvp(command[0], command)
