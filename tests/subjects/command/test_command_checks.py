"""What is found to be wrong before any test is run."""

from __future__ import annotations

import pytest

from swarmtest import Feature, Space
from swarmtest.subjects.command.check import fullest
from swarmtest.subjects.command.debian_packages import remedy_for

GENERATOR = """
import sys
for word in sys.argv[1:]:
    if word in ("--no-loops", "--calls"):
        sys.exit(f"gen.py: unknown option {word}")
print(*sys.argv[1:])
"""
FEATURES = """
[generate]
command = ["python3", "-S", "{here}/gen.py", "{seed}", "{features}"]
[features]
loops = { on = "--loops", off = "--no-loops" }
calls = { on = "CALLS", off = "--no-calls" }
arrays = "--arrays"
[[steps]]
run = "true"
"""


def test_a_sound_file_has_no_problems(subject):
    made = subject(FEATURES.replace('off = "--no-loops"', 'off = "-x"'), gen_py=GENERATOR)
    assert made.check() == made.check(thorough=True) == []


def test_an_off_form_that_the_generator_rejects_is_named_with_the_generators_own_words(subject):
    made = subject(FEATURES, gen_py=GENERATOR)
    assert made.check() == []
    assert [line.partition(": ")[2] for line in made.check(thorough=True)] == [
        "feature 'loops' off (--no-loops): the generator ended with exit status 1: gen.py: "
        "unknown option --no-loops"
    ]


def test_a_feature_that_excludes_another_is_tried_alone(subject):
    made = subject(
        FEATURES.replace('off = "--no-loops"', 'excludes = ["calls"]').replace("CALLS", "--calls"),
        gen_py=GENERATOR,
    )
    assert made.check() == []
    assert [line.partition(": ")[2] for line in made.check(thorough=True)] == [
        "feature 'calls' alone (--calls): the generator ended with exit status 1: gen.py: unknown "
        "option --calls"
    ]


def test_an_on_form_that_the_generator_rejects_is_noticed_at_once_and_named_if_asked(subject):
    made = subject(
        FEATURES.replace('off = "--no-loops"', 'off = "-x"').replace("CALLS", "--calls"),
        gen_py=GENERATOR,
    )
    (problem,) = made.check()
    assert problem.endswith(
        "there is no test with all features on: the generator ended with exit status 1: gen.py: "
        "unknown option --calls"
    )
    (problem,) = made.check(thorough=True)
    assert "feature 'calls' alone (--calls): the generator" in problem


def test_a_generator_that_does_not_heed_its_seed_is_noticed(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "date +%N; echo {seed}", "{features}"]
        [features]
        a = "a"
        b = "b"
        [[steps]]
        run = "true"
        """
    )
    (problem,) = made.check(thorough=True)
    assert "the generator gives another test for the same seed" in problem


def test_a_generator_that_never_works_is_one_problem_and_not_one_for_each_feature(subject):
    made = subject(FEATURES.replace('"{seed}"', '"{seed}", "--no-loops"'), gen_py=GENERATOR)
    (problem,) = made.check(thorough=True)
    assert "there is no test with all features on" in problem


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('requires = ["calls"], excludes = ["calls"]', "feature 'loops' can never be on"),
        ('excludes = ["loops"]', "feature 'loops' can never be on"),
    ],
)
def test_a_feature_that_nobody_can_choose_is_named(subject, keys, problem):
    made = subject(FEATURES.replace('off = "--no-loops"', keys), gen_py=GENERATOR)
    assert problem in made.check(thorough=True)[0]


def test_a_file_in_which_nothing_can_be_chosen_is_noticed(steps):
    (problem,) = steps('[[steps]]\nrun = "true"').check(thorough=True)
    assert problem.endswith("there is only one configuration: no feature can be left out")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("csmith-not-here {test}", "step 'step1': the command 'csmith-not-here' is not installed"),
        ("csmyth {test}", "the command 'csmyth' is not installed; did you mean 'csmith'?"),
        ("LANG=C sort {test}", "'LANG=C' is not a command: set variables with env"),
        ("{here}/absent {test}", "step 'step1': there is no program "),
        ("./tool {test}", "'./tool' is beside the TOML file, but commands run in another "),
        ("tool {test}", "'tool' is not installed; tool is in"),
        ("sh tool.sh", "'tool.sh' is beside the TOML file, but commands run in another"),
        ("{here}/plain", "plain cannot be executed: chmod +x"),
    ],
)
def test_a_command_that_cannot_be_run_is_found_early(steps, tmp_path, command, problem):
    made = steps(f'[[steps]]\nrun = "{command}"', tool="", tool_sh="")
    (tmp_path / "plain").write_text("")
    (found,) = made.check()
    assert problem in found


def test_a_missing_command_is_told_with_the_package_that_has_it(steps, monkeypatch, tmp_path):
    made = steps(
        """
        [[steps]]
        run = "clang-15 {test}"
        env = { PATH = "/nowhere" }
        [reduce]
        external = "creduce"
        """
    )
    monkeypatch.setenv("PATH", "/bin")
    problems = [line.partition(": ")[2] for line in made.check()]
    assert problems[0] == (
        "step 'step1': the command 'clang-15' is not installed: apt-get install clang-15"
    )


def test_what_steps_make_themselves_cannot_be_checked_early(steps):
    assert steps('[[steps]]\nrun = "{dir}/a.out"\n[[steps]]\nrun = "./a.out"').check() == []


def test_a_directory_that_is_not_there_is_found_early(steps):
    (problem,) = steps('[[steps]]\nrun = "true"\ncwd = "{here}/gone"').check()
    assert "step 'step1': cwd: there is no directory /" in problem


def test_a_covered_program_has_to_be_built_for_it(steps):
    (problem,) = steps('[[steps]]\nrun = "true"\ncover = true').check()
    assert "/true was built without coverage: build it with `swarmtest cc`" in problem
    (problem,) = steps('[[steps]]\nrun = "./made"\ncover = true').check()
    assert "step 'step1' has cover, but './made' is no program that was built before" in problem


def test_features_that_exclude_each_other_are_not_tried_together():
    space = Space([Feature("a"), Feature("b", excludes=["a"]), Feature("c", requires=["b"])])
    assert fullest(space).included == ("a",)


COMPILER = """#!/bin/sh
cat >&2 <<END
test.c:10:10: fatal error: csmith.h: No such file or directory
   10 | #include "csmith.h"
compilation terminated.
END
exit 1
"""
TWO_FEATURES = """
[generate]
command = ["sh", "-c", "echo {seed} {features}"]
[features]
a = "-a"
b = "-b"
"""
COMPILED = """
[[steps]]
name = "cc"
run = "{here}/cc.sh {test}"
on_exit = "invalid"
[[steps]]
name = "never"
run = "./a.out"
needs = ["cc"]
"""
REJECTED = (
    "none of 8 tests was valid: step cc: exit status 1: test.c:10:10: fatal error: csmith.h: "
    "No such file or directory (apt-get install libcsmith-dev)"
)


def test_a_step_that_rejects_every_test_is_named_with_the_line_that_tells_most(subject):
    made = subject(TWO_FEATURES + COMPILED, cc_sh=COMPILER)
    assert made.check() == []
    assert [line.partition(": ")[2] for line in made.check(thorough=True)] == [REJECTED]


def test_the_commands_say_why_no_test_can_be_valid(subject, swarmtest, refused, tmp_path):
    subject(TWO_FEATURES + COMPILED, cc_sh=COMPILER)
    checked = swarmtest("check", "subject.toml", cwd=tmp_path)
    assert refused(checked) == f"swarmtest: subject.toml: {REJECTED}"
    quick = swarmtest("check", "--quick", "subject.toml", cwd=tmp_path)
    assert "2 features: nothing wrong so far; no test was run" in quick.stdout
    line = "fatal error: csmith.h: No such file or directory (apt-get install libcsmith-dev)"
    run = swarmtest("run", "subject.toml", "--tests", 3, cwd=tmp_path)
    assert line in run.stdout + run.stderr
    assert line in swarmtest("show", cwd=tmp_path).stdout


def test_one_valid_test_is_enough(subject):
    """With all features on every test is rejected: a swarm leaves some out, and goes on."""
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "echo {seed} {features}"]
        [features]
        a = "-a"
        b = "-b"
        c = "-c"
        [[steps]]
        run = ["sh", "-c", "! grep -q 'a -b -c' {test}"]
        on_exit = "invalid"
        """
    )
    assert made.check(thorough=True) == []


def test_tests_that_fail_are_no_problem_unless_something_is_missing(subject):
    fails = TWO_FEATURES + "[[steps]]\nname = 'sut'\nrun = ['sh', '-c', '%s']"
    assert subject(fails % "echo error: wrong sum >&2; exit 1").check(thorough=True) == []
    # No package is known to have it, so it may be what is tested.
    assert subject(fails % "frobnicate-not-here").check(thorough=True) == []
    missing = "echo /usr/bin/ld: cannot find -lz >&2; exit 1"
    (problem,) = subject(fails % missing).check(thorough=True)
    assert problem.endswith(
        "none of 8 tests was valid: step sut: exit status 1: "
        "/usr/bin/ld: cannot find -lz (apt-get install zlib1g-dev)"
    )


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("t.c:1:10: fatal error: csmith.h: No such file or directory", "libcsmith-dev"),
        ("t.c:1:10: fatal error: 'csmith.h' file not found", "libcsmith-dev"),
        ("t.c:1: error: include file 'csmith.h' not found", "libcsmith-dev"),
        ("mod.c:1:10: fatal error: Python.h: No such file or directory", "python3-dev"),
        ("bash: line 1: clang-15: command not found", "clang-15"),
        ("env: ‘gcc’: No such file or directory", "gcc"),
        ("/usr/bin/ld: cannot find -lgmp: No such file or directory", "libgmp-dev"),
    ],
)
def test_what_to_install_is_known_for_some_missing_things(line, remedy):
    assert remedy_for(line) == f"apt-get install {remedy}"


@pytest.mark.parametrize(
    "line",
    ["cat: a.txt: No such file or directory", "t.c:1:1: error: 'x' undeclared", "value not found"],
)
def test_what_a_program_does_not_find_is_not_always_a_package(line):
    assert remedy_for(line) == ""
