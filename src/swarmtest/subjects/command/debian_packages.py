"""Name the Debian package that provides a missing command, header or library."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

_PACKAGES = {
    "awk": "gawk",
    "bc": "bc",
    "c++": "g++",
    "cc": "gcc",
    "clang": "clang",
    "clang++": "clang",
    "creduce": "creduce",
    "csmith": "csmith libcsmith-dev",
    "cvise": "cvise",
    "duk": "duktape",
    "emacs": "emacs-nox",
    "g++": "g++",
    "gcc": "gcc",
    "gcov": "gcc",
    "gfortran": "gfortran",
    "ghc": "ghc",
    "go": "golang-go",
    "guile": "guile-3.0",
    "java": "default-jre-headless",
    "javac": "default-jdk-headless",
    "jq": "jq",
    "js": "nodejs",
    "lli": "llvm",
    "llc": "llvm",
    "lua": "lua5.4",
    "make": "make",
    "node": "nodejs",
    "ocaml": "ocaml",
    "opt": "llvm",
    "perl": "perl",
    "php": "php-cli",
    "python3": "python3",
    "qjs": "quickjs",
    "ruby": "ruby",
    "rustc": "rustc",
    "sqlite3": "sqlite3",
    "tcc": "tcc",
    "timeout": "coreutils",
    "valgrind": "valgrind",
    "z3": "z3",
    "cvc5": "cvc5",
}
_HEADERS = {
    "assert.h": "libc6-dev",
    "csmith.h": "libcsmith-dev",
    "gmp.h": "libgmp-dev",
    "iostream": "g++",
    "limits.h": "libc6-dev",
    "Python.h": "python3-dev",
    "stdint.h": "libc6-dev",
    "stdio.h": "libc6-dev",
    "stdlib.h": "libc6-dev",
    "string.h": "libc6-dev",
    "zlib.h": "zlib1g-dev",
}
_LIBRARIES = {"gmp": "libgmp-dev", "m": "libc6-dev", "stdc++": "g++", "z": "zlib1g-dev"}

_NO_HEADER = re.compile(
    r"error: (?:include file )?'?(?P<name>[\w./+-]+)'?"
    r"(?:: No such file or directory| file not found| not found)"
)
_NO_LIBRARY = re.compile(r"cannot find -l(?P<name>[\w.+-]+)")
_NO_COMMAND = re.compile(
    r"(?:^|: )(?P<name>[\w.+-]+): (?:command )?not found$"
    r"|^env: .(?P<quoted>[\w.+-]+).: No such file or directory$"
)
_NO_MODULE = re.compile(r"No module named '(?P<name>\w+)")
_VERSIONED = re.compile(r"(gcc|g\+\+|clang|gfortran|clang\+\+)-(\d+)")


def how_to_install(command: str) -> str:
    """Return the end of a message about a command that is not installed: how to install it.

    >>> how_to_install("csmith")
    ': apt-get install csmith libcsmith-dev'
    >>> how_to_install("/opt/mine/frobnicate")
    ''
    """
    name = Path(command).name
    versioned = _VERSIONED.fullmatch(name)
    if versioned:
        return f": apt-get install {versioned[1].replace('clang++', 'clang')}-{versioned[2]}"
    package = _PACKAGES.get(name)
    if package:
        return f": apt-get install {package}"
    near = difflib.get_close_matches(name, _PACKAGES, n=1, cutoff=0.8)
    return f"; did you mean {near[0]!r}?" if near else ""


def remedy_for(line: str) -> str:
    """Return how to install what a line of output says is missing; empty if it says no such thing.

    >>> remedy_for("sh: 1: csmith: not found")
    'apt-get install csmith libcsmith-dev'
    >>> remedy_for("/usr/bin/ld: cannot find -lz: No such file or directory")
    'apt-get install zlib1g-dev'
    """
    if missing := _NO_COMMAND.search(line):
        return how_to_install(missing["name"] or missing["quoted"]).lstrip(":; ")
    if missing := _NO_MODULE.search(line):
        return f"pip install {missing['name']}, if that is its package"
    package = ""
    if missing := _NO_HEADER.search(line):
        package = _HEADERS.get(Path(missing["name"]).name, "")
    elif missing := _NO_LIBRARY.search(line):
        package = _LIBRARIES.get(missing["name"], "")
    return f"apt-get install {package}" if package else ""
