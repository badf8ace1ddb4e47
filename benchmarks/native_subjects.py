"""The C programs that native_coverage.py measures with, and their tests.

duktape (an interpreter of JavaScript) and tcc (a compiler) are built from Debian's source packages,
fetched with the machine's own apt sources (as `deb-src`, in a directory of ours: the machine's
configuration stays as it is). Where they cannot be had, and in a quick run, a C program is
generated instead, and the output says so.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

CSMITH = (
    *("--quiet", "--nomain", "--no-safe-math", "--no-checksum", "--no-packed-struct"),
    *("--max-funcs", "2", "--max-block-depth", "2", "--max-block-size", "3"),
    *("--max-expr-complexity", "5"),
)
CSMITH_TYPES = """\
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
"""
STATEMENTS = (
    "a.push(#, #); a.sort(function (x, y) { return x - y; });",
    "for (var i = 0; i < #; i++) { if (i % 7 == 3) continue; a[i] = i * #; }",
    "print(JSON.stringify(o), JSON.parse('[#, {\"b\": #}]')[1].b);",
    "s = s.replace(/[a-m]+/g, function (m) { return m.toUpperCase() + #; });",
    "try { null.f(#); } catch (e) { print(e.name, e.message); }",
    "o['k' + #] = a.slice(#, #).map(Math.sqrt); delete o.k#;",
    "print(new Date(#e9).toISOString(), (#.5).toFixed(2), parseInt('#', 16));",
    "switch (a.length % 5) { case 0: s += #; break; case 3: s = s.substr(1); default: o.z = #; }",
    "(function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2); })(# % 9);",
    "print(s.split('').reverse().join('#').indexOf('w'), encodeURIComponent(s), a.concat([#]));",
    "Object.defineProperty(o, 'p#', {get: function () { return #; }}); for (var k in o) print(k);",
    "label: while (true) { do { if (# > 50) break label; } while (false); break; }",
    "print(new Uint8Array([#, #]).length, typeof o, o instanceof Object, # >>> 2, ~#, # in a);",
    "eval('var v# = ' + # + ' * 2; v#0 = 1'); print(isNaN(s), String(a), [] + {});",
)


@dataclass(frozen=True)
class Subject:
    """A program to build and tests to run it on."""

    name: str
    title: str
    directory: Path
    sources: tuple[Path, ...]
    tests: tuple[bytes, ...]
    tests_are: str
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    suffix: str = ""


class Unavailable(Exception):
    """Why Debian's source cannot be had."""


def find_subjects(work: Path, tests: int, *, quick: bool) -> list[Subject]:
    """The programs to measure; or, with a line that says why, a generated one.

    A quick run takes a smaller generated one: building duktape three times takes longer than all
    that is measured with it.
    """
    if quick:
        return [generated(work, tests, functions=150)]
    try:
        return [duktape(work, tests), tcc(work, tests)]
    except Unavailable as reason:
        print(f"not measured on Debian's programs ({reason}), but on a generated one")
        return [generated(work, tests)]


def duktape(work: Path, tests: int) -> Subject:
    """The interpreter from Debian's source, and small random programs for it to run."""
    source = debian_source("duktape", work)
    parts = ("src-noline/duktape.c", "examples/cmdline/duk_cmdline.c")
    sources = tuple(source / part for part in (*parts, "extras/print-alert/duk_print_alert.c"))
    includes = (source / "src-noline", source / "examples/cmdline", source / "extras/print-alert")
    rng = random.Random(1)
    return Subject(
        "duktape",
        f"{source.name} ({_lines_of(sources)} lines of C)",
        source,
        sources,
        tuple(javascript(rng) for _ in range(tests)),
        "random JavaScript programs",
        (*(f"-I{path}" for path in includes), "-DDUK_CMDLINE_PRINTALERT_SUPPORT"),
        ("-lm",),
        ("{test}",),
        ".js",
    )


def javascript(rng: random.Random) -> bytes:
    """Ten statements, each with numbers of its own."""
    lines = [
        re.sub("#", lambda _: str(rng.randint(0, 99)), rng.choice(STATEMENTS)) for _ in range(10)
    ]
    return ("var a = [5, 3, 8], o = {k: 1}, s = 'swarm';\n" + "\n".join(lines) + "\n").encode()


def tcc(work: Path, tests: int) -> Subject:
    """The compiler from Debian's source, and small programs by csmith for it to compile.

    csmith's header, which every test includes, is replaced with the few types that the tests use,
    because parsing it would be most of a test's time.
    """
    source = debian_source("tcc", work)
    if not (source / "config.h").exists():
        _run(["./configure"], source)
    (source / "types").mkdir(exist_ok=True)
    (source / "types" / "csmith.h").write_text(CSMITH_TYPES)
    return Subject(
        "tcc",
        f"{source.name} ({_lines_of(source.glob('*.[ch]'))} lines of C)",
        source,
        (source / "tcc.c",),
        tuple(csmith_program(seed, source) for seed in range(1, tests + 1)),
        "programs by csmith",
        ("-I", str(source), "-DONE_SOURCE=1"),
        ("-lm", "-ldl", "-lpthread"),
        # Not -o /dev/null: tcc removes its output file first, and root may remove that one.
        ("-B", str(source), "-I", str(source / "types"), "-w", "-c", "{test}", "-o", "out.o"),
        ".c",
    )


def csmith_program(seed: int, directory: Path) -> bytes:
    """A small C program, the same for the same seed; csmith leaves a file in the directory."""
    if not shutil.which("csmith"):
        raise Unavailable("csmith makes the tests and is not installed: apt-get install csmith")
    command = ["csmith", "--seed", str(seed), *CSMITH]
    return subprocess.run(command, cwd=directory, capture_output=True, check=True).stdout


def debian_source(package: str, work: Path) -> Path:
    """The unpacked source of a Debian package, fetched once."""
    found = [path for path in work.glob(f"{package}-[0-9]*") if path.is_dir()]
    if not found:
        fetch_source(package, work)
        found = [path for path in work.glob(f"{package}-[0-9]*") if path.is_dir()]
    return found[0]


def fetch_source(package: str, work: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-source"):
        raise Unavailable("no apt-get and dpkg-source here: apt-get install dpkg-dev")
    apt = work / "apt"
    (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (apt / "sources").mkdir(exist_ok=True)
    for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]:
        text = file.read_text() if file.exists() else ""
        if "debian-archive-keyring" in text or file.name == "sources.list":
            text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
            text = re.sub(r"^deb\s", "deb-src ", text, flags=re.MULTILINE)
            (apt / "sources" / file.name).write_text(text)
    options = [
        *("-o", "Dir::Etc::sourcelist=/dev/null"),
        *("-o", f"Dir::Etc::sourceparts={apt / 'sources'}"),
        *("-o", f"Dir::State::lists={apt / 'lists'}"),
        *("-o", f"Dir::Cache={apt}"),
    ]
    # An archive that does not answer is no matter, if another has the source.
    subprocess.run(["apt-get", *options, "-q", "update"], cwd=work, capture_output=True)
    _run(["apt-get", *options, "-q", "source", package], work)


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"{Path(command[0]).name} failed: {reason}")


def _lines_of(files: Iterable[Path]) -> str:
    texts = (path.read_text(errors="replace") for path in files)
    return f"{sum(text.count(chr(10)) for text in texts):,}"


def generated(work: Path, tests: int, functions: int = 1500) -> Subject:
    """A program that walks through many small functions, as its input's bytes tell it."""
    rng = random.Random(1)
    directory = work / "generated"
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / "generated.c"
    parts = ["#include <stdio.h>", "static volatile unsigned sum;"]
    for number in range(functions):
        parts.append(f"static unsigned step{number}(unsigned c) {{")
        for _ in range(4):
            parts += [f"  if (c % {rng.randint(2, 9)} == {rng.randint(0, 3)})"]
            parts += [f"    sum += c * {rng.randint(1, 99)};", "  else", "    sum ^= c + 1;"]
        parts += ["  return sum;", "}"]
    names = ", ".join(f"step{number}" for number in range(functions))
    parts += [f"static unsigned (*steps[])(unsigned) = {{{names}}};", "int main(void) {"]
    parts += ["  for (int c; (c = getchar()) != EOF;)"]
    parts += [f"    steps[(sum * 31 + c) % {functions}](c);", "  return 0;", "}"]
    text = "\n".join(parts) + "\n"
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    data = tuple(rng.randbytes(2000) for _ in range(tests))
    title = f"generated.c ({len(parts):,} lines of C)"
    return Subject("generated", title, directory, (source,), data, "random inputs")
