"""Known bugs of old releases, found with ready models and checks: how much has to be written?

    python benchmarks/hunt.py [--quick] [--only WORD]

Each bug is in a release of a package that `known_bugs.py` does not use, and gone in a later one.
The bugs were chosen from changelogs that describe them, before anything was run on them. A harness
has at most ten lines: a comparison with a ready model, the checks that any class can have, or one
assertion. It runs for at most 60 CPU seconds on the release that has the bug, and as long on the
one that has not. The bug is found if a fault with its signature shows in the first and not in the
second. A fault that both have is counted as a false alarm. Then `--api` runs on classes of current
releases: each fault that no trophy explains (`trophies/`) is a false alarm.

The goals are 0.9 of the bugs, 10 lines, 1 false alarm per bug and 0.3 per class. The last line is
one JSON object.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness import cannot_measure, print_figures, print_table, progress

from swarmtest import UserError
from swarmtest.subjects.oracles.releases import installed

SOURCE = Path(__file__).resolve().parents[1] / "src"
CPU_SECONDS = 60
TESTS = 300
FAULT = re.compile(r"^fault [0-9a-f]{8}  (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Hunt:
    """A known bug: the release that has it, the one that has not, and how it is looked for."""

    broken: str
    fixed: str
    signature: str
    """A regular expression that the fault's line contains."""
    harness: str

    @property
    def lines(self) -> int:
        """Return how many lines the harness has."""
        return len(self.harness.strip().splitlines())


HUNTS = [
    Hunt(
        "tomlkit==0.11.0",
        "tomlkit==0.15.2",
        r"after ior: .* raises NonExistentKey",
        """
import tomlkit
from swarmtest import Compared, sampled_from

class DocumentTest(Compared):
    tested = tomlkit.document
    like = "dict"
    key = sampled_from(["a", "b", "c"])
""",
    ),
    Hunt(
        "sortedcollections==1.1.2",
        "sortedcollections==2.1.0",
        r"delitem: raises AttributeError, where dict does not",
        """
from sortedcollections import ValueSortedDict
from swarmtest import Compared

class ValueSortedDictTest(Compared):
    tested = ValueSortedDict
    like = "dict"
""",
    ),
    Hunt(
        "tomlkit==0.7.1",
        "tomlkit==0.7.2",
        r"has another length than the original",
        """
import tomlkit
from swarmtest import Compared, sampled_from

class DocumentTest(Compared):
    tested = tomlkit.document
    like = "dict"
    without = "ior"
    key = sampled_from(["a", "b", "c"])
""",
    ),
    Hunt(
        "multidict==6.7.1",
        "multidict==6.8.0",
        r"SIGSEGV",
        """
from multidict import MultiDict
from swarmtest import Compared, sampled_from

class MultiDictTest(Compared):
    tested = MultiDict
    like = "dict"
    key = sampled_from(["a", "b", "c"])
""",
    ),
    Hunt(
        "more-itertools==10.8.0",
        "more-itertools==11.0.0",
        r"slice: another result",
        """
from more_itertools import numeric_range
from swarmtest import Compared

class RangeTest(Compared):
    tested = lambda: numeric_range(10, 0, -3)
    like = lambda: tuple(range(10, 0, -3))
""",
    ),
    Hunt(
        "more-itertools==11.0.2",
        "more-itertools==11.1.0",
        r"numeric_range",
        """
from more_itertools import numeric_range
from swarmtest import Compared

class RangeTest(Compared):
    tested = lambda: numeric_range(5, 0)
    like = lambda: tuple(range(5, 0))
""",
    ),
    Hunt(
        "python-dateutil==2.9.0",
        "python-dateutil==3.0.0",
        r"CheckFailed: it is equal to an object",
        """
from dateutil.relativedelta import relativedelta
from swarmtest import Machine, action, integers, with_checks

@with_checks("delta", relativedelta)
class DeltaTest(Machine):
    @action(days=integers(-99, 99), months=integers(-99, 99))
    def start(self, days=0, months=0):
        self.delta = relativedelta(days=days, months=months)
""",
    ),
    Hunt(
        "packaging==26.2",
        "packaging==26.3",
        r"AssertionError: hash",
        """
from packaging.requirements import Requirement
from swarmtest import Machine, action, sampled_from

VERSIONS = sampled_from(["1", "1.0", "1.0.0", "2"])
class RequirementTest(Machine):
    @action(one=VERSIONS, two=VERSIONS)
    def hash(self, one, two):
        a, b = Requirement(f"a=={one}"), Requirement(f"a=={two}")
        assert a != b or hash(a) == hash(b), "hash"
""",
    ),
    Hunt(
        "python-dotenv==1.2.2",
        "python-dotenv==1.2.3",
        r"write_and_read",
        r"""
from dotenv import dotenv_values, set_key
from swarmtest import Machine, action, text

class DotenvTest(Machine):
    @action(value=text("a\\'\" n$"))
    def write_and_read(self, value):
        open("x.env", "w").close()
        set_key("x.env", "A", value)
        assert dotenv_values("x.env", interpolate=False)["A"] == value
""",
    ),
    Hunt(
        "semver==3.0.4",
        "semver==3.1.0",
        r"TypeError: .*__init__",
        """
from semver import Version
from swarmtest import Machine, action, integers, sampled_from

OTHERS = sampled_from([{}, (), [], {"a": 1}, ("x",), None])
class VersionTest(Machine):
    @action(number=integers(0, 9), other=OTHERS)
    def compare(self, number, other):
        assert Version(number) != other
""",
    ),
    Hunt(
        "cbor2==6.1.4",
        "cbor2==6.1.5",
        r"AssertionError: hash",
        """
from cbor2 import CBORSimpleValue
from swarmtest import Machine, action, integers

class SimpleTest(Machine):
    @action(number=integers(0, 19))
    def hash(self, number):
        value = CBORSimpleValue(number)
        assert value != number or hash(value) == hash(number), "hash"
""",
    ),
    Hunt(
        "colour==0.0.6",
        "colour==0.1.1",
        r"comparing it with another object",
        """
from colour import Color
from swarmtest import Machine, action, sampled_from, with_checks

@with_checks("color", lambda: Color("red"))
class ColorTest(Machine):
    @action(name=sampled_from(["red", "blue", "white"]))
    def start(self, name="red"):
        self.color = Color(name)
""",
    ),
    Hunt(
        "yarl==1.9.3",
        "yarl==1.9.4",
        r"read_what_people_see",
        """
from swarmtest import Machine, action, text
from yarl import URL

class UserTest(Machine):
    @action(user=text("ab:@[]/", min_size=1))
    def read_what_people_see(self, user):
        url = URL.build(scheme="http", user=user, host="a")
        assert URL(url.human_repr()) == url
""",
    ),
    Hunt(
        "python-box==3.4.2",
        "python-box==3.4.3",
        r"update",
        """
from box import Box
from swarmtest import Compared, sampled_from

class BoxTest(Compared):
    tested = Box
    like = "dict"
    key = sampled_from(["a", "b", "c"])
    value = sampled_from([1, {"x": 1}, {"y": 2}])
""",
    ),
    Hunt(
        "python-box==4.0.3",
        "python-box==4.0.4",
        r"get",
        """
from box import Box
from swarmtest import Compared, sampled_from

class BoxTest(Compared):
    tested = Box
    like = "dict"
    key = sampled_from(["a", "b", "c"])
""",
    ),
    Hunt(
        "ruamel.yaml==0.17.8",
        "ruamel.yaml==0.17.9",
        r"update",
        """
from ruamel.yaml.comments import CommentedMap
from swarmtest import Compared

class MapTest(Compared):
    tested = CommentedMap
    like = "dict"
""",
    ),
]
TROPHIES = {
    "collections_extended:bag": r"a -= b with itself",
    "heapdict:heapdict": r"a\.update\(b\) with itself",
}
"""What is explained, by class."""
CLASSES = [
    ("sortedcontainers==2.4.0", "sortedcontainers:SortedDict"),
    ("sortedcontainers==2.4.0", "sortedcontainers:SortedList"),
    ("bidict==0.24.1", "bidict:OrderedBidict"),
    ("multidict==7.2.1", "multidict:MultiDict"),
    ("frozendict==2.5.1", "frozendict:frozendict"),
    ("python-box==7.4.1", "box:Box"),
    ("collections-extended==2.0.2", "collections_extended:bag"),
    ("collections-extended==2.0.2", "collections_extended:setlist"),
    ("collections-extended==2.0.2", "collections_extended:RangeMap"),
    ("pqdict==1.5.1", "pqdict:pqdict"),
    ("HeapDict==1.0.1", "heapdict:heapdict"),
    ("llist==0.7.1", "llist:dllist"),
    ("pylru==1.3.3", "pylru:lrucache"),
    ("expiringdict==1.2.2", "expiringdict:ExpiringDict"),
    ("furl==2.1.4", "furl:furl"),
    ("yarl==1.25.1", "yarl:URL"),
]


def faults(release: str, words: list[str], tests: int) -> list[str]:
    """Return the lines of the faults that a campaign finds in a release."""
    progress(f"{release}: {' '.join(Path(word).name for word in words)}")
    try:
        place = installed(release)
    except UserError as error:
        cannot_measure(str(error))
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "swarmtest", "run", *words, "-q", "-j", "1"]
        command += ["--tests", str(tests), "--cpu-time", f"{CPU_SECONDS}s", "--no-reduce"]
        command += ["--no-why", "--timeout", "3s", "--store", f"{directory}/store.db"]
        environment = os.environ | {"PYTHONPATH": f"{place}{os.pathsep}{SOURCE}"}
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=directory
        )
    if done.returncode not in (0, 1):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        cannot_measure(f"the campaign on {release} ended with {done.returncode}: {last}")
    return FAULT.findall(done.stdout)


def hunted(hunt: Hunt, tests: int) -> tuple[bool, int]:
    """Return whether the bug is found, and the number of false alarms."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "hunted_machine.py")
        file.write_text(hunt.harness)
        broken = faults(hunt.broken, [str(file)], tests)
        fixed = faults(hunt.fixed, [str(file)], tests)
    shows = [line for line in broken if re.search(hunt.signature, line)]
    still = [line for line in fixed if re.search(hunt.signature, line)]
    return bool(shows) and not still, len(set(broken) & set(fixed))


def main() -> None:
    """Run the hunts and the classes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one bug and one class")
    parser.add_argument("--only", default="", metavar="WORD", help="releases with this in the name")
    options = parser.parse_args()
    hunts = [hunt for hunt in HUNTS if options.only in hunt.broken]
    classes = [pair for pair in CLASSES if options.only in pair[0]]
    tests = TESTS
    if options.quick:
        hunts, classes, tests = hunts[:1], classes[:1], 100
    results = [(hunt, *hunted(hunt, tests)) for hunt in hunts]
    rows = [
        (hunt.broken, hunt.fixed, "yes" if found else "NO", hunt.lines, alarms)
        for hunt, found, alarms in results
    ]
    print_table(["release with the bug", "without", "found", "lines", "false alarms"], rows)
    print()
    alarms = {}
    for release, name in classes:
        lines = faults(release, [name, "--api"], tests)
        explained = TROPHIES.get(name)
        alarms[name] = [line for line in lines if not (explained and re.search(explained, line))]
    print_table(["class", "false alarms"], [(name, len(found)) for name, found in alarms.items()])
    for name, found in alarms.items():
        for line in found:
            print(f"  {name}: {line}")
    hits = sum(shows for _, shows, _ in results)
    print_figures(
        {
            "found": hits / max(len(results), 1),
            "bugs": len(results),
            "lines_per_bug": sum(hunt.lines for hunt, _, _ in results) / max(len(results), 1),
            "false_alarms_per_bug": sum(each for _, _, each in results) / max(len(results), 1),
            "api_false_alarms_per_class": sum(map(len, alarms.values())) / max(len(alarms), 1),
        }
    )


if __name__ == "__main__":
    main()
