"""A program is built when it is missing, and when a source is not as it was built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from native_programs import need

from swarmtest import UserError
from swarmtest.coverage import Build, Library, Program
from swarmtest.subjects.command.subject import load_command_subject

ANSWER = '#include <stdio.h>\nint main(void) {\n  puts("%s");\n  return 0;\n}\n'
COMMAND = "swarmtest cc gcc -o answer answer.c"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need("gcc", "addr2line")
    monkeypatch.chdir(tmp_path)
    Path("answer.c").write_text(ANSWER % "one")
    return tmp_path


def answer(build: Build | str = COMMAND) -> str:
    with Program(["./answer"], build=build) as program:
        return program.run(b"").stdout.decode().strip()


def test_a_missing_program_is_built_and_an_edited_one_is_built_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert answer() == "one"
    assert answer() == "one"
    assert capfd.readouterr().err.count("building") == 1
    Path("answer.c").write_text(ANSWER % "two")
    assert answer() == "two"
    assert capfd.readouterr().err.count("building") == 1


def test_a_source_that_was_only_touched_needs_no_build(capfd: pytest.CaptureFixture[str]) -> None:
    assert answer() == "one"
    os.utime("answer.c", ns=(1, 1))
    assert answer() == "one"
    assert capfd.readouterr().err.count("building") == 1


def test_another_command_a_new_source_and_a_replaced_program_need_a_build() -> None:
    build = Build("cp answer.c out", output="out")
    assert build.bring_up_to_date()
    assert not build.bring_up_to_date()
    assert Build("cp -f answer.c out", output="out").bring_up_to_date()
    Path("more.h").write_text("")
    assert Build("cp -f answer.c out", output="out").bring_up_to_date()
    Path("out").write_text("by hand")
    assert Build("cp -f answer.c out", output="out").bring_up_to_date()
    Path("more.h").unlink()
    assert Build("cp -f answer.c out", output="out").bring_up_to_date()


def test_only_the_named_sources_count() -> None:
    Path("lib").mkdir()
    Path("lib", "table.txt").write_text("1")
    build = Build(["cp", "lib/table.txt", "out"], ["lib"], "out")
    assert build.bring_up_to_date()
    Path("answer.c").write_text("")
    assert not build.bring_up_to_date()
    Path("lib", "table.txt").write_text("2")
    assert build.bring_up_to_date()


def test_a_source_that_the_build_writes_does_not_cause_another_build() -> None:
    build = Build("cp answer.c made.c && cp made.c out", output="out")
    assert build.bring_up_to_date()
    assert not build.bring_up_to_date()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (Build("gcc -o answer answer.c", ["lib/*.c"]), "no file in .* is a source 'lib/\\*.c'"),
        (Build("true", output="other"), "true did not write other"),
        (Build("echo 'a.c:1:2: error: no' >&2; exit 3"), "ended with 3: a.c:1:2: error: no"),
        (Build("sleep 9", seconds=0.01), "did not end in 0.01 s"),
        (Build(["no-such-cc", "answer.c"]), "no-such-cc answer.c: .*No such file"),
        (Build("true\0"), "null byte"),
        (Build("true", ["/no/*.c"]), "the source '/no/.*': Non-relative patterns"),
    ],
)
def test_a_failing_build_says_why_in_one_line(build: Build, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Program(["./answer"], build=build)


def test_pipes_and_links_that_lead_nowhere_are_no_sources() -> None:
    os.mkfifo("pipe.c")  # reading it would wait for ever
    Path(".#answer.c").symlink_to("me@host.7")  # as Emacs locks a file that is being edited
    build = Build("cp answer.c out", output="out")
    assert build.bring_up_to_date()
    assert not build.bring_up_to_date()


def test_a_library_is_built_as_well() -> None:
    Path("half.c").write_text("int half(int x) { return x / 2; }\n")
    library = Library("./libhalf.so", build="swarmtest cc gcc -shared -fPIC -o libhalf.so half.c")
    assert library.functions.half(8) == 4


TOML = """\
[build]
command = "swarmtest cc gcc -o divide divide.c"
output = "divide"
sources = ["divide.c"]
[generate]
command = "sh -c 'echo {seed} {features}'"
[features]
zero = "0"
nine = "9"
[[steps]]
run = "{here}/divide"
stdin = "{test}"
cover = true
"""
DIVIDE = """\
#include <stdio.h>
int main(void) {
  int seed, number, count = 0;
  scanf("%d", &seed);
  while (scanf("%d", &number) == 1)
    count += number == 9;
  return count > 1;
}
"""


def swarmtest(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "swarmtest", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_toml_subject_is_built_again_and_its_base_version_for_itself(
    monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    monkeypatch.setenv("SWARMTEST_STORE", str(here / "divide.db"))
    Path("divide.toml").write_text(TOML)
    Path("divide.c").write_text(DIVIDE)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run([*git, "add", "divide.c", "divide.toml"], check=True)
    subprocess.run([*git, "commit", "-qm", "before"], check=True)
    assert load_command_subject("divide.toml").check() == []
    Path("divide.c").write_text(DIVIDE.replace("count += number == 9;", "count += 2;"))
    words = ("--tests", "30", "--workers", "0", "--no-reduce", "--diff", "HEAD", "--json")
    done = swarmtest("focus", "divide.toml", *words)
    faults = json.loads(done.stdout.splitlines()[-1])["faults"]
    assert [fault["status"] for fault in faults] == ["new"], done.stderr
    assert "building divide" in done.stderr
