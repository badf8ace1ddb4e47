"""Recognisers on real messages: samples that were kept, and programs that fail here and now.

The first line of a sample says where it is from.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.messages.crashes import (
    RECOGNISERS,
    RecognisedCrash,
    plain_name,
    recognise,
    recogniser_named,
)
from swarmtest.core.messages.mangled_names import function_name

SAMPLES = Path(__file__).parent / "samples"

OVERFLOW = "AddressSanitizer: heap-buffer-overflow"
UNDEFINED = "UndefinedBehaviorSanitizer: signed integer overflow: #"
TYPE = "cannot be represented in type '…'"
BOUNDS = "panic: index out of bounds: the len is # but the index is #"
CLANG_CRASH = (
    "crash [clang::Preprocessor::HandlePragmaDirective < "
    "clang::Preprocessor::HandleDirective < clang::Lexer::LexTokenInternal]"
)
EXPECTED = {
    "gcc": {
        "gcc-vect": "internal compiler error: in related_int_vector_mode, at stor-layout.cc",
        "gcc-segfault": "internal compiler error: Segmentation fault",
        "gcc-segfault-backtrace": "internal compiler error: Segmentation fault, during GIMPLE pass:"
        " vrp [gimple_bb < find_uses_to_rename_use < find_uses_to_rename_stmt]",
        "gcc-verify-gimple": "internal compiler error: verify_gimple failed, "
        "during GIMPLE pass: forwprop",
        "gcc-driver": "internal compiler error: Segmentation fault signal terminated program cc1",
        "gcc-compare-debug": "-fcompare-debug failure (length)",
        "gcc-confused": "confused by earlier errors, bailing out",
    },
    "clang": {
        "clang-assertion": 'Assertion `Val && "isa<> used on a null pointer"\' failed '
        "in llvm::isa_impl_cl::doit (Casting.h)",
        "clang-backend": "error in backend: #pragma clang __debug llvm_fatal_error",
        "clang-cannot-select": "error in backend: Cannot select: 0x?: i64 = RISCVISD::FSLW 0x?, "
        "0x?, Constant:i64<#>",
        "clang-crash": CLANG_CRASH,
        "clang-crash-no-symbols": CLANG_CRASH,
        "clang-unreachable": "UNREACHABLE executed at LegalizeTypes.cpp "
        "[llvm::SDNode::getNumOperands]",
    },
    "tcc": {
        "tcc-pragma-pack": "error: ',' expected (got \")\")",
        "tcc-link": "error: undefined symbol 'zz'",
    },
    "sanitizers": {
        "asan-gcc": f"{OVERFLOW} [last_of]",
        "asan-clang": f"{OVERFLOW} [last_of]",
        "asan-interceptor-gcc": "AddressSanitizer: heap-use-after-free [fill]",
        "asan-interceptor-clang": "AddressSanitizer: heap-use-after-free [fill]",
        "asan-no-symbols": OVERFLOW,
        "lsan-gcc": "LeakSanitizer: detected memory leaks [kept]",
        "lsan-clang": "LeakSanitizer: detected memory leaks [kept]",
        "msan-clang": "MemorySanitizer: use-of-uninitialized-value [sign]",
        "tsan-gcc": "ThreadSanitizer: data race [add]",
        "tsan-clang": "ThreadSanitizer: data race [add]",
        "ubsan-gcc": f"{UNDEFINED} * # {TYPE} (ubsan.c)",
        "ubsan-clang": f"{UNDEFINED} + # {TYPE} (ubsan.c)",
        "ubsan-stack-gcc": f"{UNDEFINED} * # {TYPE} [twice]",
    },
    "assert": {
        "assert-glibc": 'Assertion `x % 2 == 0 && "only even numbers"\' failed in half (assert.c)',
    },
    "glibc": {
        "glibc-free": "free(): invalid pointer",
        "glibc-double-free": "free(): double free detected in tcache 2",
        "glibc-stack": "stack smashing detected",
        "glibc-fortify": "buffer overflow detected",
    },
    "c++": {
        "cxx-exception": "uncaught std::out_of_range: vector::_M_range_check: __n (which is #) >= "
        "this->size() (which is #)",
    },
    "rust": {
        "rust": f"{BOUNDS} (p.rs)",
        "rust-backtrace": f"{BOUNDS} [p::third < p::main]",
    },
    "go": {
        "go-panic": "panic: runtime error: index out of range […] with length # "
        "[main.third < main.main]",
        "go-deadlock": "fatal error: all goroutines are asleep - deadlock! [main.main]",
    },
    "python": {"python-chained": "ValueError: nothing at # [main < <module>]"},
}
CASES = [(name, sample) for name, samples in EXPECTED.items() for sample in samples]
SAME_MESSAGE = {("clang", "assert-glibc"), ("assert", "clang-assertion")}
"""LLVM's assertions are the C library's."""


def sample_text(sample: str) -> str:
    comment, text = (SAMPLES / f"{sample}.txt").read_text().split("\n", 1)
    assert comment.startswith("# ")
    return text


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_a_real_message_gives_its_signature(name: str, sample: str) -> None:
    assert RECOGNISERS[name].find(sample_text(sample)) == EXPECTED[name][sample]


def test_every_sample_is_expected_of_one_recogniser() -> None:
    assert sorted(path.stem for path in SAMPLES.glob("*.txt")) == sorted(s for _, s in CASES)
    assert set(EXPECTED) == set(RECOGNISERS)


@pytest.mark.parametrize(("name", "sample"), CASES)
def test_a_message_is_not_taken_for_another_family_s(name: str, sample: str) -> None:
    others = set(RECOGNISERS) - {name}
    taken = {other for other in others if RECOGNISERS[other].find(sample_text(sample))}
    assert taken <= {other for other, text in SAME_MESSAGE if text == sample}


@pytest.mark.parametrize("name", RECOGNISERS)
def test_ordinary_output_is_nothing(name: str) -> None:
    ordinary = (
        "checksum = 5C1BA6BE\n"
        "t.c:3:5: warning: unused variable 'x' [-Wunused-variable]\n"
        "t.c:9:12: error: 'y' undeclared (first use in this function)\n"
        "make: *** [Makefile:3: all] Error 1\n"
        "gcc: fatal error: Killed signal terminated program cc1\n"
    )
    assert RECOGNISERS[name].find(ordinary) is None
    assert RECOGNISERS[name].find("") is None


@pytest.mark.parametrize(
    ("name", "one", "again"),
    [
        (
            "gcc",
            "a.c:1:2: internal compiler error: in expand_expr_real_1, at expr.c:10012",
            "b.c:77:1: internal compiler error: in expand_expr_real_1, at expr.c:10350",
        ),
        (
            "gcc",
            "a.c:1:2: internal compiler error: tree check: expected class 'type', have "
            "'exceptional' (error_mark) in useless_type_conversion_p, at gimple-expr.cc:88",
            "b.c:9:2: internal compiler error: tree check: expected class 'type', have "
            "'exceptional' (error_mark) in useless_type_conversion_p, at gimple-expr.cc:91",
        ),
        (
            "sanitizers",
            sample_text("asan-gcc"),
            sample_text("asan-gcc").replace("0x5636", "0x7aaa").replace("asan.c:2", "asan.c:20"),
        ),
        ("tcc", "t.c:12: error: 'l_201' undeclared", "t.c:900: error: 'l_3' undeclared"),
        ("rust", sample_text("rust"), sample_text("rust").replace("is 2", "is 7")),
    ],
)
def test_the_same_bug_elsewhere_has_the_same_signature(name: str, one: str, again: str) -> None:
    assert one != again
    found = RECOGNISERS[name].find(one)
    assert found is not None
    assert found == RECOGNISERS[name].find(again)


@pytest.mark.parametrize("name", RECOGNISERS)
@pytest.mark.parametrize("noise", ["x" * 500_000, "a: " * 100_000, "t.c:12: f: 'x'\n" * 20_000])
def test_much_output_without_line_breaks_takes_no_time(name: str, noise: str) -> None:
    sample = next(iter(EXPECTED[name]))
    start = time.process_time()
    assert RECOGNISERS[name].find(noise) is None
    assert RECOGNISERS[name].find(f"{noise}\n{sample_text(sample)}") == EXPECTED[name][sample]
    assert time.process_time() - start < 30  # some 0.1 s; hours, where the time is quadratic


def test_an_assertion_in_a_header_is_told_apart_by_its_callers() -> None:
    def crash(caller: str) -> str:
        return sample_text("clang-assertion") + (
            " #0 0x00000000021b376a llvm::sys::PrintStackTrace(llvm::raw_ostream&) /src/S.inc:4:0\n"
            " #1 0x00007f9e4efbc02a abort /build/glibc/stdlib/abort.c:91:0\n"
            f" #2 0x0000000002b3ee29 {caller}(llvm::Value*) /src/x.cpp:8:0\n"
        )

    one, other = (RECOGNISERS["clang"].find(crash(name)) for name in ("llvm::f", "llvm::g"))
    assert one is not None
    assert one.endswith("[llvm::f]")
    assert one != other


def test_the_first_recogniser_that_knows_something_is_believed() -> None:
    text = sample_text("clang-assertion")
    clang, plain = recognise(text, ["tcc", "clang", "assert"]), recognise(text, ["assert"])
    assert clang is not None
    assert plain is not None
    assert (clang.name, plain.name) == ("clang", "assert")
    assert recognise(text, ["gcc", "glibc"]) is None
    assert recognise("free(): invalid size", ["glibc"]) == RecognisedCrash(
        "glibc", "free(): invalid size"
    )


def test_a_name_that_is_not_known_gets_the_nearest() -> None:
    with pytest.raises(UserError, match="no recogniser 'gc'; did you mean 'gcc'"):
        recogniser_named("gc")


ASAN = """
#include <stdlib.h>
static int last_of(int *numbers, int count) { return numbers[count]; }
int main(void) { int *n = calloc(4, sizeof *n); return last_of(n, 4); }
"""
SHIFT = "int main(int c, char **v) { return 1 << (31 + c); }"
HALF = """
#include <assert.h>
static int half(int x) { assert(x % 2 == 0); return x / 2; }
int main(int c, char **v) { return half(c); }
"""
FREE = "#include <stdlib.h>\nint main(void) { char *p = malloc(40); free(p + 16); return 0; }"
NO_BLOCK = "int __GIMPLE (ssa) f (int a) { int b; __BB(2): goto __BB5; __BB(3): return a_1(D); }"
LIVE = {
    "gcc: address sanitizer": (
        *("sanitizers", ASAN, ["gcc", "-g", "-fsanitize=address"]),
        f"{OVERFLOW} [last_of]",
    ),
    "gcc: undefined behaviour": (
        *("sanitizers", SHIFT, ["gcc", "-fsanitize=undefined"]),
        "UndefinedBehaviorSanitizer: shift exponent # is too large for #-bit type '…' (t.c)",
    ),
    "gcc: assert": ("assert", HALF, ["gcc"], "Assertion `x % 2 == 0' failed in half (t.c)"),
    "glibc: free": ("glibc", FREE, ["gcc", "-w"], "free(): invalid pointer"),
    "gcc: internal compiler error": (
        *("gcc", NO_BLOCK, ["gcc", "-fgimple", "-c"]),
        "internal compiler error: Segmentation fault",
    ),
    "clang: crash": (
        *("clang", "#pragma clang __debug parser_crash\n", ["clang", "-c"]),
        "crash [clang::",
    ),
    "clang: backend": (
        *("clang", "#pragma clang __debug llvm_fatal_error\n", ["clang", "-c"]),
        "error in backend: #pragma clang __debug llvm_fatal_error",
    ),
    "tcc: pragma pack": (
        *("tcc", "#pragma pack(push)\nint x;", ["tcc", "-c"]),
        "error: ',' expected (got \")\")",
    ),
}


@pytest.mark.parametrize("case", LIVE)
def test_what_compilers_and_programs_print_here_and_now_is_recognised(
    case: str, tmp_path: Path
) -> None:
    name, source, command, signature = LIVE[case]
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}: apt-get install {command[0]}")
    (tmp_path / "t.c").write_text(source)
    built = subprocess.run([*command, "t.c", "-o", "t"], cwd=tmp_path, capture_output=True)
    output = built.stderr
    if not built.returncode:
        output = subprocess.run(["./t"], cwd=tmp_path, capture_output=True).stderr
    found = RECOGNISERS[name].find(output.decode())
    assert found is not None
    assert found.startswith(signature)


def test_a_crash_of_clang_is_the_same_without_a_symbolizer(tmp_path: Path) -> None:
    if not shutil.which("clang"):
        pytest.skip("needs clang: apt-get install clang")
    (tmp_path / "t.c").write_text("#pragma clang __debug parser_crash\n")
    signatures = {
        RECOGNISERS["clang"].find(
            subprocess.run(
                ["clang", "-c", "t.c"],
                cwd=tmp_path,
                env={**os.environ, **symbols},
                capture_output=True,
                text=True,
            ).stderr
        )
        for symbols in ({}, {"LLVM_DISABLE_SYMBOLIZATION": "1"})
    }
    assert len(signatures) == 1
    assert str(signatures.pop()).startswith("crash [clang::")


def test_a_python_traceback_is_recognised_live() -> None:
    program = "def f(): return {}['k']\ndef g(): return f()\ng()"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert RECOGNISERS["python"].find(ran.stderr) == "KeyError: '…' [f < g < <module>]"


# Mangled names are read as a demangler reads them.

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
