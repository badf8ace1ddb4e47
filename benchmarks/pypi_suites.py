"""PyPI packages with their own test suites, and how to set them up in a working directory.

The sdist is what is unpacked, tested and covered: its source directory goes first on PYTHONPATH, so
that the covered files are the unpacked ones, and nothing is built. One venv serves all suites.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.parse
import urllib.request
import venv
from dataclasses import dataclass
from pathlib import Path

from harness import progress
from unpacking import unpack_tar

REPOSITORY = Path(__file__).resolve().parent.parent
INDEX = "https://pypi.org/simple"
TOOLS = ("pytest==9.2.0", "coverage==7.17.2")
ASYNCIO_VERSION = "pytest-asyncio==1.4.1.post1"
HYPOTHESIS_VERSION = "hypothesis==6.170.15"
HYPOTHESIS = "_hypothesis_pytestplugin"
ASYNCIO = "pytest_asyncio.plugin"
RECORDER = "suite_recorder"  # seeds, and a file of verdicts
PLUGINS = "plugins"
LOOP_SCOPE = "-oasyncio_default_fixture_loop_scope=function"  # unset it is a warning
TESTS = ("tests",)


@dataclass(frozen=True)
class Suite:
    """A package at a version, and how to run its tests."""

    name: str
    version: str
    cover: tuple[str, ...]  # import names
    tests: tuple[str, ...] = TESTS  # arguments of pytest, from the root of the sdist
    source: str = "."  # the directory in the sdist that goes on PYTHONPATH
    plugins: tuple[str, ...] = ()  # pytest plugins: they are not loaded by themselves
    requires: tuple[str, ...] = ()
    inside: str = ""  # the tests' directory, if it is in the package: its files are not compared
    left_out: tuple[tuple[str, str], ...] = ()  # test, and why it cannot be in the study
    quick: bool = False

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"

    @property
    def stem(self) -> str:
        """The normalised name and version, as in the name of a directory."""
        return f"{re.sub(r'[-_.]+', '_', self.name).lower()}-{self.version}"


SUITES = [
    # async generators, async with, decorators that build classes, operators
    Suite(
        "aiostream",
        "0.8.1",
        cover=("aiostream",),
        plugins=(ASYNCIO,),
        requires=(ASYNCIO_VERSION, "typing-extensions==4.16.0"),
        quick=True,
    ),
    # classes made with exec, slots, dataclass-like decorators, two packages in one sdist
    Suite(
        "attrs",
        "26.1.0",
        cover=("attr", "attrs"),
        source="src",
        plugins=(HYPOTHESIS,),
        # Its metadata is read by the package.
        requires=("attrs==26.1.0", HYPOTHESIS_VERSION, "cloudpickle==3.1.2"),
        left_out=(
            (
                "tests/test_converters.py::TestPipe::test_wrapped_annotation",
                "fails on Python 3.11.7: inspect.signature overlooks a __call__ of the instance",
            ),
        ),
    ),
    # weak references, context managers, async receivers, conditional imports
    Suite(
        "blinker",
        "1.9.0",
        cover=("blinker",),
        tests=(LOOP_SCOPE, "tests"),
        source="src",
        plugins=(ASYNCIO,),
        requires=(ASYNCIO_VERSION,),
    ),
    # old-style code of all kinds: try/except/else, loops with else, nested functions, exec
    Suite("boltons", "26.2.0", cover=("boltons",)),
    # locks, nested functions in decorators, lambdas, try/finally
    Suite("cachetools", "8.0.0", cover=("cachetools",), source="src"),
    # match statements in most functions, generators as coroutines, async, frozen dataclasses
    Suite(
        "expression",
        "5.8.0",
        cover=("expression",),
        plugins=(ASYNCIO, HYPOTHESIS),
        requires=(
            ASYNCIO_VERSION,
            HYPOTHESIS_VERSION,
            "typing-extensions==4.16.0",
            "pydantic==2.11.7",  # seven tests fail with 2.13
        ),
    ),
    # generators, one-line functions, decorators, lambdas
    Suite(
        "funcy",
        "2.1",
        cover=("funcy",),
        requires=("whatever==0.7",),
        left_out=(
            (
                "tests/test_debug.py::test_log_iter_dirations",
                "how a time is written depends on whether nothing takes less than a microsecond",
            ),
        ),
        quick=True,
    ),
    # metaclasses, frames and tracebacks looked at by the package itself
    Suite(
        "glom",
        "25.12.0",
        cover=("glom",),
        tests=("glom/test",),
        inside="glom/test",
        requires=("boltons==26.2.0", "attrs==26.1.0", "face==26.0.1", "PyYAML==6.0.3"),
        left_out=(("glom/test/test_cli.py::test_main", "needs the installed command `glom`"),),
    ),
    # a state machine, protocol readers, metaclass of sentinels
    Suite("h11", "0.16.0", cover=("h11",), tests=("h11/tests",), inside="h11/tests", quick=True),
    # a parser and compiler that writes Python code and rewrites tracebacks; sync and async twins
    Suite(
        "Jinja2",
        "3.1.6",
        cover=("jinja2",),
        source="src",
        requires=("MarkupSafe==3.0.4", "trio==0.35.0"),
    ),
    # a namespace package, doctests of the covered module itself
    Suite(
        "jaraco.functools",
        "4.6.0",
        cover=("jaraco.functools",),
        tests=("--doctest-modules", "jaraco", "test_functools.py"),
        requires=("jaraco.classes==3.4.0", "more-itertools==11.2.1"),
        left_out=(
            (
                "test_functools.py::TestThrottler::test_function_throttled",
                "counts calls in a second: fails on a busy machine, with or without coverage",
            ),
        ),
    ),
    # grammars, parsers, recursion, metaclasses, code generation, pickling
    Suite("lark", "1.3.1", cover=("lark",)),
    # regular expressions, deep loops, subclasses of library classes
    Suite(
        "Markdown",
        "3.11.3",
        cover=("markdown",),
        requires=("PyYAML==6.0.3",),
        left_out=(
            (
                "tests/test_syntax/extensions/test_md_in_html.py",
                "imports unittest's TestSuite; pytest warns of that, and the suite makes it an "
                "error",
            ),
        ),
    ),
    # class bodies, metaclasses, inheritance, generic classes
    Suite(
        "marshmallow",
        "4.4.0",
        cover=("marshmallow",),
        source="src",
        requires=("simplejson==4.3.0",),
        left_out=(
            (
                "tests/test_deserialization.py::TestFieldDeserialization"
                "::test_invalid_datetime_deserialization",
                "the time of day is part of its name",
            ),
        ),
    ),
    # generators of every shape, for and while with else, threads
    Suite(
        "more-itertools",
        "11.2.1",
        cover=("more_itertools",),
        left_out=(
            ("tests/test_recipes.py::PrimeFunctionTests::test_primes", "takes 20 seconds"),
            ("tests/test_more.py::DiscreteFourierTransformTests", "takes 4 seconds"),
            (
                "tests/test_recipes.py::PrimeFunctionTests::test_nth_prime_approximate",
                "takes 3 seconds",
            ),
            ("tests/test_more.py::TestSerialize::test_concurrent_calls", "takes 4 seconds"),
            (
                "tests/test_more.py::TestConcurrentTee",
                "whether two threads meet in _concurrent_tee.__next__ is up to chance",
            ),
        ),
    ),
    # a tokenizer and incremental parser: long while loops, try/except/else, generators
    Suite("parso", "0.8.7", cover=("parso",), tests=("test",)),
    # tries, exec of class templates, metaclasses, __slots__
    Suite(
        "pyrsistent",
        "0.20.0",
        cover=("pyrsistent",),
        plugins=(HYPOTHESIS,),
        requires=(HYPOTHESIS_VERSION,),
    ),
    # generators over token trees, decorators, recursion
    Suite("sqlparse", "0.6.1", cover=("sqlparse",)),
    # context variables, async methods, frames, conditional imports
    Suite(
        "structlog",
        "26.1.0",
        cover=("structlog",),
        tests=(LOOP_SCOPE, "-oasyncio_mode=auto", "tests"),
        source="src",
        plugins=(ASYNCIO,),
        requires=(
            "structlog==26.1.0",  # its metadata is tested
            ASYNCIO_VERSION,
            "freezegun==1.5.5",
            "pretend==1.0.9",
            "time-machine==3.6.0",
        ),
    ),
    # async and sync decorators, iteration over context managers
    Suite(
        "tenacity",
        "9.2.1",
        cover=("tenacity",),
        requires=("tornado==6.6.1", "trio==0.35.0"),
    ),
    # closures, dataclass-free query objects, overridden operators
    Suite("tinydb", "4.9.0", cover=("tinydb",), requires=("PyYAML==6.0.3",)),
    # curried functions, signatures by inspection, a second package of relative re-exports
    Suite("toolz", "1.2.0", cover=("toolz", "tlz"), tests=("toolz", "tlz"), inside="toolz/tests"),
]


@dataclass(frozen=True)
class Checkout:
    """An unpacked suite: where it is and where its output goes."""

    suite: Suite
    root: Path
    output: Path
    python: Path

    @property
    def source(self) -> Path:
        return (self.root / self.suite.source).resolve()

    @property
    def covered(self) -> list[Path]:
        return [self.source / name.replace(".", "/") for name in self.suite.cover]

    def environment(self) -> dict[str, str]:
        """The variables of every run: one hash seed, no plugin that was not asked for."""
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "COV"))
        }
        path = [self.source, self.output.parent / PLUGINS, REPOSITORY / "src"]
        return kept | {
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "PYTHONHASHSEED": "0",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }


def prepare(suites: list[Suite], work: Path, quick: bool = False) -> list[Checkout]:
    """The suites unpacked under a directory, with one venv for all that they need.

    A quick run has a venv of its own, with no more than its suites need.
    """
    (work / PLUGINS).mkdir(parents=True, exist_ok=True)
    # Not from here: the other scripts beside it would be importable by the suites.
    shutil.copy(Path(__file__).with_name(f"{RECORDER}.py"), work / PLUGINS)
    python = _venv(work / "venv-quick", suites) if quick else _venv(work / "venv", SUITES)
    checkouts = []
    for suite in suites:
        output = work / suite.stem
        root = output / "sdist"
        if not root.is_dir():
            output.mkdir(exist_ok=True)
            _unpack(_sdist(suite, work / "sdists"), root)
        checkouts.append(Checkout(suite, root, output, python))
    return checkouts


def _venv(directory: Path, suites: list[Suite]) -> Path:
    """A venv with the tools, what swarmtest needs, and what any of the suites needs."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = {*TOOLS, *project["dependencies"], *(r for suite in suites for r in suite.requires)}
    stamp = directory / "swarmtest-requirements.txt"
    contents = "\n".join([f"Python {sys.version}", *sorted(wanted)])
    python = directory / "bin" / "python"
    if not (stamp.is_file() and stamp.read_text() == contents):
        progress(f"making {directory}")
        venv.create(directory, clear=True)
        # Our own pip installs into it: it needs none, and compiles only what it imports.
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-compile"]
        subprocess.run([*pip, "-qq", *sorted(wanted)], check=True)
        stamp.write_text(contents)
    return python


def _sdist(suite: Suite, directory: Path) -> Path:
    """The sdist, from the simple index: pip would build it to know what it needs."""
    project = re.sub(r"[-_.]+", "-", suite.name).lower()
    with urllib.request.urlopen(f"{INDEX}/{project}/") as answer:
        page = answer.read().decode()
    for link in re.findall(r'href="([^"]+)"', page):
        url = urllib.parse.urlsplit(
            urllib.parse.urljoin(f"{INDEX}/{project}/", html.unescape(link))
        )
        file = Path(url.path).name
        stem = file.removesuffix(".tar.gz")
        if stem != file and re.sub(r"[-_.]+(?=.*-)", "_", stem).lower() == suite.stem:
            break
    else:
        raise LookupError(f"no sdist of {suite.requirement} on {INDEX}")
    progress(f"getting {file}")
    with urllib.request.urlopen(url._replace(fragment="").geturl()) as answer:
        contents = answer.read()
    if url.fragment != f"sha256={hashlib.sha256(contents).hexdigest()}":
        raise ValueError(f"{file} is not what the index says: {url.fragment}")
    directory.mkdir(exist_ok=True)
    (directory / file).write_bytes(contents)
    return directory / file


def _unpack(sdist: Path, root: Path) -> None:
    """The one directory of an sdist, as `root`."""
    unpacked = root.with_suffix(".unpacking")
    shutil.rmtree(unpacked, ignore_errors=True)
    unpack_tar(sdist, unpacked)
    (directory,) = unpacked.iterdir()
    directory.rename(root)
    unpacked.rmdir()
