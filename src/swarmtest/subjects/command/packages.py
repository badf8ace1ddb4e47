"""Which Debian package has a command that is not installed."""

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
    "csmith": "csmith",
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
_VERSIONED = re.compile(r"(gcc|g\+\+|clang|gfortran|clang\+\+)-(\d+)")


def how_to_install(command: str) -> str:
    """The tail of a message about a command that is not installed.

    >>> how_to_install("csmith")
    ': apt-get install csmith'
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
