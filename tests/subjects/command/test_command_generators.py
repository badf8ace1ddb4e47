"""What a generator is told of a configuration, and what becomes of what it makes."""

from __future__ import annotations

import pytest

from swarmtest import UserError
from swarmtest.core.result import Verdict

STEP = """
[[steps]]
run = "true"
"""


def printed(subject, features, seed=1):
    """The test that a generator prints."""
    return subject.code(subject.test_of(subject.space.configuration(features), seed)).strip()


def test_features_add_their_words_when_on_and_when_off(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "echo $0 $*", "{features}", "{seed}"]
        seed_bits = 8
        [features]
        short = "--short"
        both = { on = "--both", off = "--no-both" }
        only_off = { off = ["--without", "only off"] }
        """
        + STEP
    )
    assert printed(made, ["short", "both", "only_off"], seed=6) == "--short --both 7"
    assert printed(made, ["short"], seed=6) == "--short --no-both --without only off 7"
    assert printed(made, ["both"], seed=255) == "--both --without only off 1"  # 1 to 255, never 0


def test_words_inside_a_longer_word_are_joined(subject):
    made = subject(
        """
        [generate]
        command = ["echo", "{seed}", "--use={features}", "{{features}}", "{feature:b}"]
        separator = ","
        [features]
        a = "x"
        b = "y"
        """
        + STEP
    )
    assert printed(made, ["a", "b"]).split()[1:] == ["--use=x,y", "{features}", "y"]
    assert printed(made, ["a"]).split()[1:] == ["--use=x", "{features}"]


def test_environment_variables_are_features_too(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "echo $DEPTH $MODE $SEED"]
        env = { SEED = "{seed}" }
        [features]
        deep = { env = { DEPTH = "9" }, env_off = { DEPTH = "2" } }
        fast = { env = { MODE = "fast" } }
        """
        + STEP
    )
    assert printed(made, ["deep", "fast"]) == "9 fast 2"
    assert printed(made, ["fast"]) == "2 fast 2"


def test_a_config_file_is_made_from_a_template(subject):
    made = subject(
        """
        [generate]
        command = "cat {config}"
        [generate.config]
        template = "gen.ini"
        [features]
        loops = { config = "loops = yes", config_off = "loops = no" }
        calls = { config = "calls = yes" }
        """
        + STEP,
        gen_ini="seed = {seed}\n{features}\n[more]\n{feature:calls} {unknown}\n",
    )
    assert printed(made, ["loops", "calls"]) == (
        "seed = 2\nloops = yes\ncalls = yes\n[more]\ncalls = yes {unknown}"
    )
    assert printed(made, ["calls"]).startswith("seed = 2\nloops = no\ncalls = yes")


MARKED = """
echo begin $1
echo loop            # swarm: loops
echo call            # swarm: calls
echo loop with call  # swarm: loops, calls
echo extra
"""


def test_lines_of_the_source_that_belong_to_features_that_are_off_are_deleted(subject):
    made = subject(
        """
        [generate]
        command = "sh {source} {seed}"
        [generate.source]
        file = "gen.sh"
        marker = "# swarm: NAME"
        [features]
        extra = { lines = "extra$" }
        calls = { requires = ["loops"] }
        """
        + STEP,
        gen_sh=MARKED,
    )
    assert made.space.feature_names == ("extra", "calls", "loops")  # the last was only marked
    assert printed(made, ["loops", "extra"]) == "begin 2\nloop\nextra"
    assert printed(made, ["loops", "calls"]) == "begin 2\nloop\ncall\nloop with call"
    with pytest.raises(UserError, match="'calls' requires 'loops'"):
        made.space.configuration(["calls"])


def test_weights_are_passed_through_as_numbers(subject):
    made = subject(
        """
        [generate]
        command = ["echo", "{seed}", "{features}"]
        [features]
        loops = { weight = "--loops={percent}" }
        calls = { weight = "--calls={weight}", off = "--no-calls" }
        """
        + STEP
    )
    assert made.weighted
    assert printed(made, {"loops": 0.25, "calls": 1}) == "2 --loops=25 --calls=1"
    assert printed(made, {"loops": 0.001, "calls": 0.5}).startswith("2 --loops=1 --calls=0.5")
    assert printed(made, {"loops": 1}) == "2 --loops=100 --no-calls"


def test_weights_reach_variables_and_config_files(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "cat $0; echo $CALLS # {seed}", "{config}"]
        [generate.config]
        text = "{features}"
        [features]
        loops = { config = "p={percent} " }
        calls = { env = { CALLS = "{percent}" } }
        [[steps]]
        run = "true"
        """
    )
    assert made.weighted
    half = made.space.configuration({"loops": 0.25, "calls": 0.5})
    assert made.code(made.test_of(half, 1)) == "p=25 50\n"


def test_what_a_feature_adds_may_have_placeholders(subject, tmp_path):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "echo $* $WHERE", "{features}", "{seed}"]
        [features]
        a = { on = ["-", "--dictionary={here}/words", "{setting:level}"] }
        b = { env = { WHERE = "{here}" } }
        [settings]
        level = ["-O0", "-O1"]
        [[steps]]
        run = "true"
        """
    )
    assert made.code(made.test_of(made.space.default(), 6)) == (
        f"--dictionary={tmp_path}/words -O0 7 {tmp_path}\n"
    )


def test_a_switch_refuses_a_weight_in_between(subject):
    made = subject(
        """
        [generate]
        command = ["echo", "{seed}", "{features}"]
        [features]
        loops = "--loops"
        calls = { weight = "--calls={weight}" }
        """
        + STEP
    )
    assert not made.weighted
    with pytest.raises(UserError, match=r"feature 'loops' is a switch, a weight of 0\.3 means"):
        made.execute(made.space.configuration({"loops": 0.3}), 1)


def test_settings_reach_the_generator_and_the_steps(subject):
    made = subject(
        """
        [generate]
        command = "echo {seed} {setting:size} {features}"
        [features]
        a = "a"
        [settings]
        size = { low = 1, high = 9 }
        level = ["-O0", "-O2"]
        debug = true
        [[steps]]
        run = ["sh", "-c", 'echo {setting:level} {setting:debug}; exit 3']
        """
    )
    assert made.space.setting_names == ("size", "level", "debug")
    chosen = made.space.configuration({"a": 1, "size": 4, "level": "-O2"})
    result = made.execute(chosen, 1)
    assert made.code(result.test) == "2 4 a\n"
    assert "-O2 true" in result.fault.details
    assert made.replay(result.test).fault.details == result.fault.details
    del result.test["settings"]["level"]  # as saved before there was one
    assert "-O0 true" in made.replay(result.test).fault.details
    result.test["settings"]["level"] = "-O0; echo owned"  # as somebody else may have saved it
    with pytest.raises(UserError, match="'level' cannot be '-O0; echo owned'"):
        made.replay(result.test)


def test_a_generator_may_write_the_file_itself(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "echo chatter; echo {seed} > {test}; ls", "{features}"]
        suffix = ".txt"
        [features]
        a = "a"
        [[steps]]
        run = ["sh", "-c", "ls; exit 1"]
        """
    )
    result = made.execute(made.space.default(), 4)
    assert made.code(result.test) == "5\n"
    assert "test.txt" in result.fault.details


def test_the_steps_do_not_see_files_that_the_generator_left(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "touch left; echo {seed}", "{features}"]
        [features]
        a = "a"
        [[steps]]
        run = ["sh", "-c", "test ! -e left"]
        """
    )
    assert made.execute(made.space.default(), 4).verdict == Verdict.PASSED


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo oops >&2; exit 4", "the generator ended with exit status 4: oops"),
        ("echo so; exit 4", "the generator ended with exit status 4: so"),
        ("kill -SEGV $$", "the generator ended with SIGSEGV"),
        ("sleep 9", "the generator took longer than 0.2 s"),
        ("echo dry >&2", "the generator printed an empty test: dry"),
        ("yes | head -c 2000000", "the generator printed 1 MiB or more: let it write to {test}"),
        ("mkfifo {test}", "the generator created a directory, pipe or device instead of a file"),
        ("ln -s /dev/zero {test}", "the generator created a directory, pipe or device instead"),
        ("truncate -s 3G {test}", "the generator wrote 3,072 MiB: a test has 64 MiB at most"),
    ],
)
def test_a_generator_that_fails_makes_an_invalid_test_and_no_fault(subject, command, why):
    made = subject(
        f"""
        [generate]
        command = ["sh", "-c", '{command}', "{{seed}}", "{{features}}"]
        timeout = {0.2 if command.startswith("sleep") else 60}
        [features]
        a = "a"
        [[steps]]
        run = "false"
        """
    )
    result = made.execute(made.space.default(), 1)
    assert result.verdict == Verdict.INVALID
    assert result.fault is None
    assert result.missing.startswith(why)
    with pytest.raises(UserError, match="there is no test: the generator"):
        made.test_of(made.space.default(), 1)


def test_exit_statuses_of_a_generator_can_be_expected(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "echo {seed}; exit 4", "{features}"]
        expect = [4]
        [features]
        a = "a"
        """
        + STEP
    )
    assert made.execute(made.space.default(), 1).verdict == Verdict.PASSED


def test_what_really_appears_is_counted_in_the_text(subject):
    made = subject(
        """
        [generate]
        command = ["sh", "-c", "echo loop; echo loop; echo {seed}", "{features}"]
        [features]
        loops = { on = "-l", appears = "^loop$" }
        calls = { on = "-c", appears = "call" }
        other = "-o"
        quiet = "-q"
        """
        + STEP
    )
    result = made.execute(made.space.configuration(["loops", "calls", "other"]), 1)
    assert result.used == (2, 0, 1, 0)  # without a way to tell, on counts as once
    made = subject('[generate]\ncommand = "echo {seed} {features}"\n[features]\na = "a"\n' + STEP)
    assert made.execute(made.space.default(), 1).used == ()


def test_the_same_configuration_and_seed_give_the_same_result(subject):
    made = subject(
        """
        [generate]
        command = "echo {seed} {features}"
        [features]
        a = "a"
        [[steps]]
        run = ["sh", "-c", "pwd >&2; cat {test}; exit 1"]
        cwd = "{dir}"
        """
    )
    first, second = (made.execute(made.space.default(), 7) for _ in range(2))
    assert first._replace(cpu_seconds=0) == second._replace(cpu_seconds=0)
    assert first.fault.details == second.fault.details
    assert "\n{dir}\n" in first.fault.details
    assert "swarmtest-" not in first.fault.details  # the directory's real name
    assert first.test == second.test
