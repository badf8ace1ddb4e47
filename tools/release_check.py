"""Check that a release can be made: `make release-check`.

    python tools/release_check.py                  everything; it takes a while
    python tools/release_check.py build changelog  some checks
    python tools/release_check.py --list           what there is

Wheel and sdist are built and installed into clean environments below build/release, for each Python
that is there. Nothing there sees the repository. The exit status is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
SECONDS = 900
EXTRA_IMPORTS = {
    "antlr": "grammarinator",
    "c": "tree_sitter_c",
    "coverage": "coverage",
    "dashboard": "starlette, uvicorn",
    "dask": "distributed",
    "docs": "sphinx, myst_parser",
    "exact": "pysat",
    "fast": "numba",
    "figures": "matplotlib",
    "grammar": "lark",
    "hypothesis": "hypothesis",
    "jobqueue": "dask_jobqueue",
    "kubernetes": "dask_kubernetes",
    "mutants-c": "tree_sitter_c",
    "optuna": "optuna",
    "parquet": "pyarrow",
    "postgres": "psycopg",
}
"""What an extra installs, by the names under which it is imported."""
STACK = """
from swarmtest import Machine, action

class Stack(Machine):
    def start(self): self.items = []
    @action
    def push(self):
        self.items.append(1)
        assert len(self.items) < 20
    @action
    def pop(self): self.items and self.items.pop()
"""
TYPED = """
from swarmtest import Campaign, Machine, action, integers

class Counter(Machine):
    def start(self) -> None:
        self.value = 0

    @action(amount=integers(0, 9))
    def add(self, amount: int) -> None:
        self.value += amount

outcome = Campaign(Counter, "coin", 10, store=":memory:", workers=0).run()
tests: int = outcome.progress.tests
"""
WRONG = "from swarmtest import integers\nintegers(0, 'nine')\n"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# file: (\S+)\n")


class CheckFailed(Exception):
    """A check has failed; the text says why."""


def run(*words: object, cwd: Path | None = None, status: Sequence[int] = (0,), **env: str) -> str:
    """Run a command, and return what it prints; raise `CheckFailed` if it fails."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SWARMTEST_STORE"))}
    line = [str(word) for word in words]
    done = subprocess.run(
        line, cwd=cwd, env=kept | env, capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode not in status:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-12:]
        raise CheckFailed(f"{' '.join(line)}: exit status {done.returncode}\n" + "\n".join(said))
    return done.stdout


@dataclass
class Release:
    """What is checked, and where."""

    folder: Path
    pythons: dict[str, Path]
    """The interpreters that are there, by version."""

    @cached_property
    def project(self) -> dict[str, object]:
        with (ROOT / "pyproject.toml").open("rb") as file:
            project: dict[str, object] = tomllib.load(file)["project"]
        return project

    @property
    def version(self) -> str:
        return str(self.project["version"])

    @property
    def usual(self) -> Path:
        """The oldest interpreter: what works there has to work in the others, too."""
        return next(iter(self.pythons.values()))

    @cached_property
    def tools(self) -> Path:
        """The Python of an environment with what builds and checks."""
        return self.environment("tools", self.usual, "build", "twine", "mypy")

    @cached_property
    def files(self) -> tuple[Path, Path]:
        """The wheel and the sdist, built in a process of their own."""
        out = self.folder / "dist"
        shutil.rmtree(out, ignore_errors=True)
        run(self.tools, "-m", "build", "--outdir", out, ROOT)
        (wheel,) = out.glob("*.whl")
        (sdist,) = out.glob("*.tar.gz")
        return wheel, sdist

    def package_for(self, version: str) -> Path:
        """Return what a Python installs: the wheel, if it is for that version; else the sdist.

        A wheel with the accelerator is for the Python that has built it.
        """
        wheel, sdist = self.files
        tag = f"cp{version.replace('.', '')}"
        return wheel if tag in wheel.name or "-py3-none-" in wheel.name else sdist

    def environment(self, name: str, python: Path, *requirements: object, **env: str) -> Path:
        """Return the Python of a clean environment in which something is installed."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        run(python, "-m", "venv", place)
        run(place / "bin" / "python", "-m", "pip", "install", "-q", *requirements, **env)
        return place / "bin" / "python"

    def workplace(self, name: str) -> Path:
        """Return an empty directory outside of the repository, whose settings mypy would find."""
        place = Path(tempfile.gettempdir()) / f"swarmtest-release-{os.getuid()}" / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place


def check_build(release: Release) -> str:
    """Wheel and sdist are built, and have what they should have."""
    wheel, sdist = release.files
    named = run(release.tools, "-m", "zipfile", "-l", wheel)
    for wanted in ("swarmtest/py.typed", "swarmtest/ui/cli.py", "swarmtest/__init__.pyi"):
        if wanted not in named:
            raise CheckFailed(f"{wheel.name} has no {wanted}")
    return f"{wheel.name} ({wheel.stat().st_size >> 10:,} kB), {sdist.name}"


def check_metadata(release: Release) -> str:
    """`twine check --strict`, and every link in the description is absolute."""
    run(release.tools, "-m", "twine", "check", "--strict", *release.files)
    metadata = run(
        release.tools,
        "-c",
        "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); "
        "print(z.read(next(n for n in z.namelist() if n.endswith('/METADATA'))).decode())",
        release.files[0],
    )
    relative = re.findall(r"\]\((?!\w+:|#)([^)]+)\)", metadata)
    if relative:
        raise CheckFailed(f"relative links in the description: {', '.join(relative[:5])}")
    if "Project-URL: Source" not in metadata:
        return "valid; without the address of the repository: set SWARMTEST_HOME for an upload"
    return "valid, with absolute links"


def check_changelog(release: Release) -> str:
    """All fragments are in CHANGELOG.md, under the version, with a date."""
    left = [path.name for path in (ROOT / "changes").glob("*.md") if path.name != "README.md"]
    if left:
        raise CheckFailed(
            f"{len(left)} changes are not in CHANGELOG.md yet: "
            f"python tools/changelog.py {release.version} DATE --write"
        )
    heading = newest_section((ROOT / "CHANGELOG.md").read_text())
    if not re.fullmatch(rf"{re.escape(release.version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        raise CheckFailed(f"the newest section of CHANGELOG.md is {heading!r}")
    return heading


def newest_section(changelog: str) -> str:
    """Return the heading of the newest section of a changelog."""
    match = re.search(r"^## (.+)$", changelog, re.MULTILINE)
    return match[1].strip() if match else ""


def check_pythons(release: Release) -> str:
    """The package works in each Python: a campaign finds a fault, the README's commands run."""
    for version, interpreter in release.pythons.items():
        print(f"  Python {version}", file=sys.stderr, flush=True)
        package = release.package_for(version)
        python = release.environment(f"py{version}", interpreter, package, "sqlalchemy==2.1.8")
        finds_a_fault(release, python, f"work-{version}")
        run_readme(release, python, f"readme-{version}")
    return ", ".join(release.pythons)


def finds_a_fault(release: Release, python: Path, name: str) -> None:
    """Run a campaign, and the commands that a user types next."""
    place = release.workplace(name)
    (place / "stack.py").write_text(STACK)
    swarmtest = python.with_name("swarmtest")
    shown = run(swarmtest, "--version", cwd=place)
    if release.version not in shown:
        raise CheckFailed(f"swarmtest --version prints {shown!r}")
    shown = run(swarmtest, "run", "stack.py", "-n", "200", cwd=place, status=[1])
    if "for _ in range(20):" not in shown:
        raise CheckFailed(f"the reduced test is not shown:\n{shown}")
    run(swarmtest, "roles", cwd=place)
    run(swarmtest, "report", "-o", "report.html", cwd=place)


def run_readme(release: Release, python: Path, name: str) -> None:
    """Run the commands of README.md, in a directory with its files."""
    place = release.workplace(name)
    for language, body in BLOCK.findall((ROOT / "README.md").read_text()):
        file = FILE.match(body)
        if file:
            (place / file[1]).write_text(body)
        elif language == "console":
            for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
                program, *words = command.split()
                run(python.with_name(program), *words, cwd=place, status=[0, 1])


def check_no_compiler(release: Release) -> str:
    """The sdist can be installed where no compiler is, and works without the accelerator."""
    empty = release.workplace("no-compiler-path")
    for tool in ("cc", "gcc", "clang", "c++", "g++"):
        (empty / tool).write_text("#!/bin/sh\nexit 1\n")
        (empty / tool).chmod(0o755)
    path = f"{empty}{os.pathsep}{os.environ['PATH']}"
    python = release.environment(
        "no-compiler", release.usual, release.files[1], PATH=path, CC=str(empty / "cc")
    )
    finds_a_fault(release, python, "work-no-compiler")
    return "the sdist"


def check_extras(release: Release) -> str:
    """Each extra can be installed alone, and brings what it is for."""
    wheel, _ = release.files
    extras = release.project["optional-dependencies"]
    assert isinstance(extras, dict)
    unknown = set(extras) - set(EXTRA_IMPORTS) - {"dev"}
    if unknown:
        raise CheckFailed(f"say in EXTRA_IMPORTS what these extras bring: {', '.join(unknown)}")
    for extra in sorted(set(extras) - {"dev"}):
        print(f"  {extra}", file=sys.stderr, flush=True)
        python = release.environment("extra", release.usual, f"{wheel}[{extra}]")
        run(python, "-c", f"import swarmtest, {EXTRA_IMPORTS[extra]}")
        run(python.with_name("swarmtest"), "--help")
    return f"{len(extras) - 1} extras"


def check_licences(release: Release) -> str:
    """The licence of everything that swarmtest installs is known; they are written to a file."""
    python = release.environment("licences", release.usual, release.files[0])
    listed = json.loads(run(python, "-c", LIST_LICENCES))
    (release.folder / "licences.txt").write_text(
        "".join(f"{name} {version}: {licence}\n" for name, version, licence in listed)
    )
    unknown = [name for name, _, licence in listed if not licence]
    if unknown:
        raise CheckFailed(f"no licence is named by {', '.join(unknown)}")
    return "; ".join(f"{name} {licence}" for name, _, licence in listed)


LIST_LICENCES = """
import json
from importlib.metadata import distributions
rows = []
for found in distributions():
    data = found.metadata
    classifiers = [c for c in data.get_all("Classifier") or () if "License" in c]
    classified = [classifier.rpartition(" :: ")[2] for classifier in classifiers]
    named = data.get("License-Expression") or " ".join((data.get("License") or "").split())[:40]
    if data["Name"] not in ("pip", "setuptools", "swarmtest"):
        rows.append((data["Name"], found.version, named or ", ".join(classified)))
print(json.dumps(sorted(rows)))
"""
"""Prints name, version and licence of everything that is installed."""


def check_types(release: Release) -> str:
    """A user's file is checked against the types of the wheel, and a mistake in it is seen."""
    python = release.environment("types", release.usual, release.files[0], "mypy")
    place = release.workplace("work-types")
    (place / "typed.py").write_text(TYPED)
    (place / "wrong.py").write_text(WRONG)
    run(python, "-m", "mypy", "--strict", "typed.py", cwd=place)
    shown = run(python, "-m", "mypy", "--strict", "wrong.py", cwd=place, status=[1])
    if "arg-type" not in shown:
        raise CheckFailed(f"mypy did not see the mistake:\n{shown}")
    return "mypy --strict"


CHECKS: dict[str, Callable[[Release], str]] = {
    "changelog": check_changelog,
    "build": check_build,
    "metadata": check_metadata,
    "licences": check_licences,
    "types": check_types,
    "pythons": check_pythons,
    "no-compiler": check_no_compiler,
    "extras": check_extras,
}


def find_pythons(versions: Iterable[str] = VERSIONS) -> dict[str, Path]:
    """Return the interpreters of this machine: on the path, or those of pyenv."""
    found = {}
    for version in versions:
        installed = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        names = [*map(str, installed[::-1]), shutil.which(f"python{version}") or ""]
        for name in filter(None, names):
            asked = subprocess.run([name, "-c", "import venv"], capture_output=True)
            if asked.returncode == 0:
                found[version] = Path(name)
                break
    return found


def main() -> int:
    """Run the checks, and say how each ended."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK", help="default: all of them")
    parser.add_argument("--list", action="store_true", help="list the checks, and do nothing")
    options = parser.parse_args()
    if options.list:
        for name, check in CHECKS.items():
            print(f"{name:12} {check.__doc__}")
        return 0
    unknown = set(options.checks) - set(CHECKS)
    if unknown:
        parser.error(f"no check is named {', '.join(sorted(unknown))}; see --list")
    release = Release(ROOT / "build" / "release", find_pythons())
    missing = [version for version in VERSIONS if version not in release.pythons]
    if missing:
        print(f"not there, so not checked: Python {', '.join(missing)}")
    failed = 0
    for name in options.checks or CHECKS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            print(f"ok      {name:12} {CHECKS[name](release)}", flush=True)
        except (CheckFailed, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"FAILED  {name:12} {error}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
