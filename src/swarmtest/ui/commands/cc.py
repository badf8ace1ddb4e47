"""``swarmtest cc``: a compiler for programs under test.

A build starts it for every file, so it imports nothing but the compiler's command line.
"""

from __future__ import annotations

import os
import sys

import click

from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.ui.help import HelpfulCommand


@click.command(
    cls=HelpfulCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Compile C or C++ with coverage for swarmtest.",
)
@click.option(
    "--sanitize",
    default="",
    metavar="NAMES",
    help="Build with sanitizers: address,undefined or memory or thread, and with the options that "
    "make their reports complete and the same each time. Write it before COMPILER.",
)
@click.argument("words", metavar="COMPILER [ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def cc(words: tuple[str, ...], sanitize: str) -> None:
    """Compile C or C++ so that a test's coverage is collected through shared memory.

    COMPILER is gcc, clang, g++, clang++, or a path. It runs with the given arguments, with -g and
    the flags for coverage, and when it links, with swarmtest's runtime. The macro SWARMTEST is
    defined.

    \b
    swarmtest cc gcc -O1 -o prog prog.c
    swarmtest cc clang++ -O2 -c part.cc
    CC="swarmtest cc gcc" ./configure && make
    make CC="swarmtest cc clang"
    swarmtest cc gcc -shared -fPIC -o libpart.so part.c
    swarmtest cc --sanitize address,undefined gcc -g -o prog prog.c

    With gcc, tail calls are not optimised (-fno-optimize-sibling-calls), because they would hide
    blocks. The program also runs without swarmtest, a little more slowly than usual.
    """
    command = compiler_command(words, sanitize)
    sys.stdout.flush()
    os.execvp(command[0], command)
