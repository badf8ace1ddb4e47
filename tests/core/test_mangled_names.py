"""Mangled names are read as a demangler reads them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from swarmtest.core.messages.crashes import plain_name
from swarmtest.core.messages.mangled_names import function_name

NAMES = {
    "main": "main",
    "_Z8cc1_mainN4llvm8ArrayRefIPKcEES2_Pv": "cc1_main",
    "_ZL9my_staticv": "my_static",
    "_ZN5clang6Parser17ParseTopLevelDeclERNS_9OpaquePtrINS_12DeclGroupRefEEEb": (
        "clang::Parser::ParseTopLevelDecl"
    ),
    "_ZNK5clang6driver10CC1Command7ExecuteEN4llvm8ArrayRefINS2_8OptionalINS2_9StringRefEEEEE": (
        "clang::driver::CC1Command::Execute"
    ),
    "_ZN12_GLOBAL__N_13runEv": "run",
    "_ZN4llvm8SmallSetILj4ELb0EED2Ev": "llvm::SmallSet::~SmallSet",
    "_ZN5clang4SemaC1Ev": "clang::Sema::Sema",
    "_ZZN4llvm3runEiENKUlvE_clEv": "llvm::run",
    "_ZThn16_N5clang4Sema3runEv": "clang::Sema::run",
    "_ZN5clang5Lexer9StringifyB5cxx11EN4llvm9StringRefEb": "clang::Lexer::Stringify[abi:cxx11]",
    "_ZNSolsEi": "std::basic_ostream::operator",
}


@pytest.mark.parametrize("symbol", NAMES)
def test_a_name_is_read(symbol: str) -> None:
    assert function_name(symbol) == NAMES[symbol]


@pytest.mark.parametrize("symbol", ["_Z", "_ZN", "_ZN5clan", "_ZN99a", "_ZN1aI", "_ZTV3Foo", "_Z%"])
def test_what_cannot_be_read_is_none(symbol: str) -> None:
    assert function_name(symbol) is None


def test_the_names_of_the_standard_library_are_those_of_a_demangler() -> None:
    for tool in ("gcc", "nm", "c++filt"):
        if not shutil.which(tool):
            pytest.skip(f"needs {tool}: apt-get install gcc binutils")
    library = _output(["gcc", "-print-file-name=libstdc++.so"]).strip()
    if library == "libstdc++.so":
        pytest.skip("needs the C++ library: apt-get install g++")
    lines = [line.split() for line in _output(["nm", "-D", "--defined-only", library]).splitlines()]
    symbols = sorted({name.split("@")[0] for _, kind, name in lines if kind in "TW"})
    functions = [name for name in symbols if name.startswith(("_ZN", "_ZSt"))]
    assert len(functions) > 1000
    demangled = _output(["c++filt"], "\n".join(functions)).splitlines()
    wrong = {
        symbol: name
        for symbol, name in zip(functions, demangled, strict=True)
        if "operator" not in name and function_name(symbol) != plain_name(name)
    }
    assert wrong == {}


def _output(command: list[str], given: str = "") -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
