"""Mistakes in a TOML file: one line that says what, where, and what would be right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from swarmtest import UserError
from swarmtest.subjects.command.subject import load_command_subject
from swarmtest.subjects.command.toml_reader import line_of

WHOLE = """\
description = "all of it"

[generate]
command = "echo {seed} {features}"
suffix = ".c"

[features]
loops = "--loops"
calls = { on = "--calls", requires = ["loops"] }

[features.arrays]
on = "--arrays"

[[steps]]
name = "compile"
run = "cat {test}"

[[steps]]
name = "run"
needs = ["compile"]
run = "true"

[oracle]
differential = ["compile", "run"]
patterns = [{ name = "bad", regex = "bad" }]
"""


def test_a_whole_file_can_be_read(subject):
    made = subject(WHOLE)
    assert made.space.feature_names == ("loops", "calls", "arrays")
    assert made.spec.description == "all of it"
    assert made.space.features[1].requires == ("loops",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('suffix = ".c"', 'sufix = ".c"', ":5: [generate] has no key 'sufix'; did you mean 'suf"),
        ("[oracle]", "[orcale]", ":23: the file has no key 'orcale'; did you mean 'oracle'?"),
        ("calls = { on", "calls = { onn", ":9: [features.calls] has no key 'onn'; did you mean"),
        ('on = "--arrays"', 'of = "--arrays"', ":12: [features.arrays] has no key 'of'; did you"),
        ('needs = ["compile"]', "neds = []", ":20: [[steps]] has no key 'neds'; did you mean 'ne"),
        ('name = "bad", regex', 'nam = "bad", regex', "[[oracle.patterns]] has no key 'nam'"),
        ('suffix = ".c"', "suffix = .c", ":5: not TOML: Invalid value (column 10)"),
        (
            'suffix = ".c"',
            'suffix = """',
            ":25: not TOML: Unterminated string (the file ends he",
        ),
        ('suffix = ".c"', "suffix = 3", ":5: [generate] suffix: a text in quotes, not 3"),
        ("{seed} ", "", ":4: [generate] command: has no {seed}, so tests could not be made again"),
        ("{seed}", "{sed}", ":4: command: no placeholder {sed}; did you mean 'seed'?"),
        (" {features}", "", ":8: [features] loops: adds words, but [generate] command has no {fea"),
        ('"--loops"', "[]", ":8: [features] loops: has no effect: give it on, off, weight,"),
        (
            '["loops"]',
            '["lops"]',
            ":9: feature 'calls' requires: no feature 'lops'; did you",
        ),
        (
            '["compile"]\nrun',
            '["complie"]\nrun',
            "needs: no step 'complie' before this one; did",
        ),
        ('"compile", "run"', '"compile", "rnu"', "differential: no step 'rnu'; did you mean 'run'"),
        ('"compile", "run"', '"compile"', "differential: needs two steps or more to compare"),
        (
            'regex = "bad"',
            'regex = "(bad"',
            "'(bad' is not a regular expression: missing ), unterm",
        ),
        (
            'regex = "bad"',
            'regex = "bad", steps = ["x"]',
            "steps: no step 'x'; known: compile,",
        ),
        ('name = "run"', 'name = "compile"', "two steps have the name 'compile'"),
        ('run = "cat {test}"', "", "[[steps]] run: missing: the command to run"),
        ('"cat {test}"', '"cat {test} | wc"', ":16: [[steps]] run: no shell runs this, so '|' is"),
        ('"cat {test}"', '"cat {seed}"', ":16: run: no placeholder {seed}"),
        ('"cat {test}"', '"cat \'x"', "run: cannot be split into words: No closing quotation"),
        (
            'run = "true"',
            'run = "true"\ntimeout = -1',
            "timeout: a number from 0.001 to 1,000,000, not -1",
        ),
        (
            'run = "true"',
            'run = "true"\nmemory = "much"',
            "memory: a number of bytes, or a te",
        ),
        ('run = "true"', 'run = "true"\non_exit = "no"', 'on_exit: one of "fail", "ignore", "inv'),
        ('run = "true"', 'run = "true"\ncover = "all"', 'cover: one of "auto", "fast", "gcov"'),
        ("[oracle]", '[oracle]\nrecognise = ["gc"]', "no recogniser 'gc'; did you mean 'gcc'?"),
        ("[oracle]", '[oracle]\npython = "x.py"', "[oracle] python: must name a function or"),
        ("[oracle]", '[oracle]\npython = "x.py:check"', "[oracle] python: no such file: "),
        ("[oracle]", "[reduce]\nexternal = 'cvis'\n[oracle]", 'external: one of "none", "auto"'),
        ("[oracle]", "[reduce]\ncommand = 'cvise'\n[oracle]", "command: has {script} and {test}"),
        ("[oracle]", "[settings]\nn = 3\n[oracle]", "[settings] n: a setting is true or false"),
        ("[oracle]", "[settings]\nn = { low = 5, high = 1 }\n[oracle]", "needs low <= high"),
        ("[oracle]", "[generate.config]\ntext = 'x'\n[oracle]", "has neither {features} nor {fe"),
        ("[oracle]", "[generate.source]\nfile = 'x.js'\n[oracle]", "file: no such file: x.js"),
        (
            '"--arrays"',
            '"--arrays"\nrate = 2',
            "[features.arrays]: feature 'arrays': rate is",
        ),
        ('"--arrays"', '"--arrays"\nweight = "--w"', "weight: has neither {weight} nor {percent}"),
        ('"--arrays"', '"--arrays"\nconfig = "a"', "has config, but there is no [generate.config]"),
        ('regex = "bad"', 'regexp = "bad"', "has no key 'regexp'; did you mean 'regex'?"),
        ('regex = "bad"', 'regex = "x*"', "'x*' matches the empty string"),
        ('command = "echo', 'comand = "echo', ":4: [generate] has no key 'comand'; did you mean"),
        ('"cat {test}"', '"cat {test} 2>/dev/null"', "no shell runs this, so '>' is plain text"),
        ('"cat {test}"', '"cat <{test}"', "no shell runs this, so '<' is plain text"),
        ('"cat {test}"', '"cat $HOME/x"', "no shell runs this, so '$HOME/x' is plain text"),
        ('"cat {test}"', '"cat {Test}"', "no placeholder {Test}; did you mean 'test'?"),
        ('"cat {test}"', '"cat \\u0000"', "run: has a null character"),
        ('"--loops"', '"--loops={heer}"', ":8: on: no placeholder {heer}; did you mean 'here'?"),
        ('"--loops"', "3", ":8: [features] loops: the words that it adds, like"),
        ('loops = "--loops"', '"-x" = "-x"', ":7: [features]: a dimension's name is"),
        ('on = "--calls"', 'on = "--calls", group = 3', ":9: [features.calls] group: a text in q"),
        ('run = "true"', 'run = "true"\ntimeout = nan', "timeout: a number from 0.001 to 1,000"),
        ('run = "true"', 'run = "true"\ntimeout = inf', "timeout: a number from 0.001 to 1,000"),
        ('run = "true"', 'run = "true"\nexpect = []', "expect: a list of whole numbers, not []"),
        ('run = "true"', 'run = "true"\nexpect = 300', "expect: exit statuses from 0 to 255"),
        ('run = "true"', 'run = "true"\nenv = { "A=B" = "1" }', "'A=B' cannot be the name of a va"),
        ('name = "run"', 'name = ""', "[[steps]] name: a name in one line"),
        ('suffix = ".c"', 'suffix = "c"', "suffix: how a file name ends, like \".c\", not 'c'"),
        ('suffix = ".c"', 'suffix = "/x.c"', "suffix: how a file name ends, like"),
        (
            '"compile", "run"',
            '"compile", "run", "run"',
            "differential: step 'run' is in the group twice",
        ),
        ("[oracle]", "[oracle]\ntimeout = 5", '[oracle] timeout: one of "fail", "ignore", "inval'),
        ("[oracle]", "[settings]\nn = { low = 1, hgh = 2 }\n[oracle]", "has no key 'hgh'; did you"),
        (
            "[oracle]",
            "[settings]\nn = { low = 1, high = 2, step = 'a' }\n[oracle]",
            "step: a whole",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place_and_what_would_be_right(
    subject, tmp_path, old, new, message
):
    assert old in WHOLE
    with pytest.raises(UserError) as error:
        subject(WHOLE.replace(old, new, 1))
    text = str(error.value)
    assert text.startswith(str(tmp_path / "subject.toml"))
    assert message in text
    assert "\n" not in text


def test_a_file_without_steps_or_features_says_what_is_missing(subject):
    with pytest.raises(UserError, match=r"no steps: write under \[\[steps\]\] what to run"):
        subject(WHOLE[: WHOLE.index("[[steps]]")])
    with pytest.raises(UserError, match=r"no features: list under \[features\] what"):
        subject('[generate]\ncommand = "echo {seed}"\n[[steps]]\nrun = "true"')


def test_a_generator_that_draws_nothing_needs_no_seed(subject):
    made = subject(WHOLE.replace("{seed} ", "").replace('suffix = ".c"', 'seed = "none"'))
    assert made.generated(made.space.default(), 1).content == b"--loops --calls --arrays\n"


def test_a_file_that_is_not_there_suggests_one_that_is(subject, tmp_path):
    subject(WHOLE)
    with pytest.raises(UserError, match=r"cannot read .*; did you mean 'subject\.toml'\?"):
        load_command_subject(str(tmp_path / "subjct.toml"))


def test_a_mark_in_the_source_that_names_nothing_declared_becomes_a_feature(subject):
    text = """
        [generate]
        command = "sh {source} {seed}"
        [generate.source]
        file = "gen.sh"
        [features]
        unmarked = {}
        [[steps]]
        run = "true"
        """
    with pytest.raises(UserError, match=r"unmarked: has no effect: .* or mark lines of the sou"):
        subject(text, gen_sh="echo x # swarm: loops\n")
    made = subject(text.replace("unmarked = {}", ""), gen_sh="echo x # swarm: loops\n")
    assert made.space.feature_names == ("loops",)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("description",), 1),
        (("generate",), 3),
        (("generate", "suffix"), 5),
        (("features", "calls", "on"), 9),
        (("features", "arrays", "on"), 12),
        (("steps", 0, "run"), 16),
        (("steps", 1, "run"), 21),
        (("steps", 1, "absent"), 18),
        (("nothing",), 0),
    ],
)
def test_the_line_of_a_key_is_found(place, line):
    assert line_of(WHOLE, place) == line


def test_every_option_is_explained_where_it_is_defined():
    from swarmtest.subjects.command import specification

    text = Path(specification.__file__).read_text()
    fields = re.findall(r"^    (\w+): [^\n]+\n(?!    \"\"\")", text, re.MULTILINE)
    plain = {"name", "path", "config", "source", "description", "generate", "forms", "space"}
    plain |= {"steps", "oracle", "reduce", "call", "patterns"}
    assert set(fields) <= plain
