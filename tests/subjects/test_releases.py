"""`swarmtest diff`: the same tests with two releases of a package, installed side by side."""

import os
import zipfile

import pytest

from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.oracles import releases

OLD = """
class Shelf:
    def __init__(self): self.books = []
    def put(self, number: int): self.books.append(number)
    def take(self):
        return self.books.pop() if self.books else None
    def find(self, number: int): return self.books.index(number)
    def only_once(self): return 1
    def __len__(self): return len(self.books)
    def __iter__(self): return iter(self.books)
    def __repr__(self): return f"<Shelf {self.books}>"
"""
RIGHT = OLD.replace("<Shelf", "<A shelf").replace("only_once", "only_twice")
WRONG = OLD.replace("self.books.pop() if self.books", "self.books.pop() if len(self.books) > 1")
CRASHES = OLD.replace("return self.books.index", "import os; os.abort(); return self.books.index")


@pytest.fixture
def place(tmp_path):
    """A directory with wheels of the releases."""
    for version, code in {"1.0": OLD, "1.1": RIGHT, "1.2": WRONG, "1.3": CRASHES}.items():
        info = f"shelfware-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: shelfware\nVersion: {version}\n"
        wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        with zipfile.ZipFile(tmp_path / f"shelfware-{version}-py3-none-any.whl", "w") as file:
            file.writestr("shelfware.py", code)
            file.writestr(f"{info}/METADATA", metadata)
            file.writestr(f"{info}/WHEEL", wheel)
            file.writestr(f"{info}/RECORD", "")
    return tmp_path


@pytest.fixture
def diff(place, swarmtest):
    def diff(old, new, *words, harness="shelfware:Shelf"):
        named = f"shelfware=={old}", f"shelfware=={new}", harness
        return swarmtest(
            *("diff", *named, "-n", 30, "-j", 1, "--no-why", "--no-reduce", "--store", "d.db"),
            *words,
            cwd=place,
            XDG_CACHE_HOME=str(place / "cache"),
            PIP_NO_INDEX="1",
            PIP_FIND_LINKS=str(place),
            PIP_CONFIG_FILE="/dev/null",
        )

    return diff


def test_releases_that_behave_alike_have_no_difference(diff):
    done = diff("1.0", "1.1", "--api")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 distinct faults" in done.stdout
    assert "only one release has them in this form: only_once, only_twice" in done.stdout


def test_a_call_that_behaves_otherwise_is_found(diff):
    done = diff("1.0", "1.2", "--api")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "take: another outcome" in done.stdout
    assert "subject = Shelf()" in done.stdout


def test_a_release_that_ends_its_process_differs_from_one_that_does_not(diff):
    done = diff("1.0", "1.3", "--api")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "shelfware==1.3 ended its process (SIGABRT), the other did not" in done.stdout


def test_a_machine_shows_what_is_to_be_compared(diff, place):
    (place / "machine.py").write_text(
        "from shelfware import Shelf\n"
        "from swarmtest import Machine, action\n"
        "class Books(Machine):\n"
        "    steps = 9\n"
        "    def start(self): self.shelf = Shelf()\n"
        "    @action\n"
        "    def put(self): self.shelf.put(1)\n"
        "    @action\n"
        "    def take(self): self.shelf.take()\n"
        "    def observe(self): return len(self.shelf)\n"
    )
    done = diff("1.0", "1.2", harness="machine.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "take: another state after it" in done.stdout


@pytest.mark.parametrize(
    ("old", "harness", "words"),
    [
        ("9.9", "shelfware:Shelf", "cannot install shelfware==9.9"),
        (">=1", "shelfware:Shelf", "named as PACKAGE==VERSION"),
        ("1.0", "shelfware:Shlef", "did you mean 'Shelf'"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(old, harness, words, diff, refused):
    refused(diff(old, "1.0", "--api", harness=harness), words)


@pytest.fixture
def release(tmp_path, monkeypatch):
    """Start the process of a release whose module begins with some lines."""

    def start(lines):
        (tmp_path / "shelfware.py").write_text(lines + OLD)
        monkeypatch.setattr(releases, "installed", lambda requirement: tmp_path)
        harness = SubjectReference("shelfware:Shelf", api=True).to_json()
        return releases.ReleaseProcess("shelfware==1.0", harness)

    return start


def test_what_a_release_starts_does_not_outlive_it(release, tmp_path):
    old = release(
        "import subprocess\n"
        "sleep = subprocess.Popen(['sleep', '9744'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(sleep.pid))\n"
    )
    assert "space" in old.ask({"ask": "space"})
    old.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_release_that_kills_its_parent_does_not_reach_us(release):
    old = release("import os, signal; os.kill(os.getppid(), signal.SIGKILL)\n")
    assert "space" in old.ask({"ask": "space"})
    assert "space" in old.ask({"ask": "space"})
    old.close()


def test_a_release_that_writes_among_its_answers_has_ended(release):
    old = release(
        "import os\n"
        "for number in range(3, 20):\n"
        "    try: os.write(number, b'junk\\n')\n"
        "    except OSError: pass\n"
    )
    assert old.ask({"ask": "space"}) == {"died": "it disturbed its answers"}
