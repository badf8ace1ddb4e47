"""Oracles: what counts as a failure, under which signature, and which of several is told."""

from __future__ import annotations

import pytest
from installed_packages import install

from swarmtest import UserError
from swarmtest.core.result import Verdict
from swarmtest.subjects.command.oracles import disagreement
from swarmtest.subjects.command.step_runner import StepOutcome


def run(made):
    return made.execute(made.space.default(), 1)


def step(command: str, name: str = "run", more: str = "") -> str:
    return f"[[steps]]\nname = \"{name}\"\nrun = ['sh', '-c', '''{command}''']\n{more}\n"


def test_a_signal_is_a_failure_named_by_its_step(steps):
    result = run(steps(step("kill -ABRT $$")))
    assert (result.fault.kind, result.fault.signature) == ("signal", "run: SIGABRT")


def test_an_exit_status_is_told_with_the_line_that_tells_most(steps):
    made = steps(step("echo x.c:12: error: bad thing g_17 >&2; echo 3 errors >&2; exit 1"))
    assert run(made).fault.signature == "run: exit status 1: x.c:#: error: bad thing g_#"


@pytest.mark.parametrize(
    ("what", "command"), [("crash", "kill -ABRT $$"), ("exit", "exit 1"), ("timeout", "sleep 9")]
)
@pytest.mark.parametrize(
    ("meaning", "verdict"),
    [("fail", Verdict.FAILED), ("ignore", Verdict.PASSED), ("invalid", Verdict.INVALID)],
)
def test_each_way_to_end_badly_may_mean_three_things(steps, what, command, meaning, verdict):
    limit = "timeout = 0.1\n" if what == "timeout" else ""
    by_step = run(steps(step(command, more=f'{limit}on_{what} = "{meaning}"')))
    overall = run(steps(step(command, more=limit) + f'[oracle]\n{what} = "{meaning}"'))
    assert by_step.verdict == overall.verdict == verdict
    if verdict == Verdict.INVALID:
        assert by_step.missing.startswith("step run: ")


def test_a_pattern_gives_the_signature_by_its_named_groups(steps):
    made = steps(
        step("echo panic in eval at 0x1234, line 99; exit 1")
        + """
        [oracle]
        patterns = [
            { name = "never", regex = "no such message" },
            { name = "panic", regex = 'panic in (?P<where>\\w+)' },
        ]
        """
    )
    assert run(made).fault.signature == "run: panic: eval"
    assert run(made).fault.kind == "message"


def test_a_pattern_without_groups_is_taken_whole_but_for_what_varies(steps):
    made = steps(
        step("echo fatal at 0x1234 in step 17") + "[oracle]\npatterns = [{ regex = '^fatal.*$' }]"
    )
    assert run(made).fault.signature == "run: fatal at 0x? in step #"


def test_a_pattern_may_be_for_some_steps_only(steps):
    oracle = "[oracle]\npatterns = [{ name = 'bad', regex = 'bad', steps = ['second'] }]"
    made = steps(step("echo bad", "first") + step("echo good", "second") + oracle)
    assert run(made).verdict == Verdict.PASSED
    made = steps(step("echo good", "first") + step("echo bad", "second") + oracle)
    assert run(made).fault.signature == "second: bad: bad"


def test_ready_made_recognisers_can_be_named(steps):
    made = steps(
        step("echo x.c:1:2: internal compiler error: in lower_stmt, at tree.cc:7 >&2; exit 4")
        + '[oracle]\nrecognise = ["sanitizers", "gcc"]'
    )
    assert run(made).fault.signature == ("run: internal compiler error: in lower_stmt, at tree.cc")


def differential(*outputs: str) -> str:
    names = ["a", "b", "c", "d"][: len(outputs)]
    text = "".join(step(output, name) for output, name in zip(outputs, names, strict=True))
    return text + f"[oracle]\nexit = 'ignore'\ntimeout = 'ignore'\ndifferential = {names}"


@pytest.mark.parametrize(
    ("outputs", "signature"),
    [
        (["echo 1", "echo 1", "echo 1"], None),
        (["echo 1", "echo 2", "echo 1"], "b disagrees with the majority"),
        (
            ["echo 1", "echo 1; exit 1", "echo 1"],
            "b disagrees with the majority: exit status 1 against an answer",
        ),
        (
            ["echo 1", "echo 1; echo 'my.KeyError: 7' >&2; exit 1", "echo 1"],
            "b disagrees with the majority: exit status 1 with KeyError against an answer",
        ),
        (
            ['echo \'{"a": [{"b": 1}]}\'', 'echo \'{"a": [{"b": 7}]}\''],
            "a against b: at a[].b",
        ),
        (["echo '{\"a\": 1}'", "echo '{\"c\": 1}'"], "a against b: at a, which one lacks"),
        (["echo [1]", "echo [1,2]"], "a against b"),
        (["echo [1]", "echo [2]"], "a against b"),
        (["echo checksum = 1", "echo checksum = 2"], "a against b: at checksum"),
        (["echo 1 >&2", "echo 2 >&2"], None),
        (["echo 1", "echo 2"], "a against b"),
        (["echo 1", "echo 2", "echo 3"], "a against b against c"),
        (["echo 1", "echo 2", "echo 2", "echo 1"], "a, d against b, c"),
        (["echo 1"] * 2 + ["echo 2", "echo 3"], "c, d disagree with the majority"),
    ],
)
def test_steps_that_must_agree_are_judged_by_the_majority(steps, outputs, signature):
    fault = run(steps(differential(*outputs))).fault
    assert (fault and fault.signature) == signature


def test_a_step_that_was_skipped_or_timed_out_does_not_vote(steps):
    made = steps(
        step("exit 1", "compile", 'on_exit = "ignore"')
        + step("echo 1", "a", 'needs = "compile"')
        + step("echo 2; sleep 9", "b", 'timeout = 0.1\non_timeout = "ignore"')
        + step("echo 3", "c")
        + '[oracle]\ndifferential = ["a", "b", "c"]'
    )
    assert run(made).verdict == Verdict.PASSED


def test_several_groups_may_have_to_agree(steps):
    made = steps(
        step("echo 1", "a")
        + step("echo 1", "b")
        + step("echo 2", "c")
        + step("echo 3", "d")
        + '[oracle]\ndifferential = [["a", "b"], ["c", "d"]]'
    )
    assert run(made).fault.signature == "c against d"


def test_no_voter_or_one_is_no_disagreement():
    assert disagreement([]) == disagreement([StepOutcome("a", 0)]) == ""


ORACLE = """
def check(steps, test):
    run = steps["run"]
    assert run.stdout != b"3\\n", f"three of {len(test)}"
    if run.stdout == b"4\\n":
        return "four: " + test
    if run.stdout == b"5\\n":
        return 5
    if run.stdout == b"6\\n":
        return {}["six"]
"""


@pytest.mark.parametrize(
    ("output", "signature"), [("1", None), ("3", "three of #"), ("4", "four: hello")]
)
def test_a_python_function_may_judge(steps, output, signature):
    made = steps(step(f"echo {output}") + '[oracle]\npython = "judge.py:check"', judge_py=ORACLE)
    fault = run(made).fault
    assert (fault and fault.signature) == signature


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("5", "the oracle judge.py:check answered 5: None if all is well, or the fault's"),
        ("6", "the oracle judge.py:check raised KeyError: 'six'"),
    ],
)
def test_a_mistake_in_the_python_function_is_the_users_to_mend(steps, output, message):
    made = steps(step(f"echo {output}") + '[oracle]\npython = "judge.py:check"', judge_py=ORACLE)
    with pytest.raises(UserError, match=message):
        run(made)


def test_of_several_failures_the_gravest_counts_and_then_the_earliest(steps):
    oracle = """
        [oracle]
        differential = ["first", "second"]
        patterns = [{ name = "panic", regex = "panic" }]
        """
    rejects = step("exit 1", "first")
    differs = step("echo 2", "second")
    assert run(steps(rejects + differs + oracle)).fault.signature == "first: exit status 1"
    crashes = step("kill -SEGV $$", "third")
    assert run(steps(rejects + differs + crashes + oracle)).fault.signature == "third: SIGSEGV"
    panics = step("echo panic; kill -SEGV $$", "fourth")
    both = rejects + differs + panics + crashes + oracle
    assert run(steps(both)).fault.signature == "fourth: panic: panic"
    doubtful = step("exit 1", "sanity", 'on_exit = "invalid"')
    result = run(steps(rejects + differs + crashes + doubtful + oracle))
    assert result.verdict == Verdict.INVALID
    assert result.missing == "step sanity: exit status 1"


def test_the_details_say_what_to_do_by_hand(steps):
    made = steps(
        step("echo out; echo err >&2; exit 2")
        + '[[steps]]\nname = "last"\nrun = "cat"\nstdin = "{test}"\nenv = { A = "1 2" }'
    )
    assert run(made).fault.details == (
        "step run: exit status 2\n"
        "$ sh -c 'echo out; echo err >&2; exit 2'\n"
        "out\n"
        "err\n"
        "\n"
        "step last: exit status 0\n"
        "\n"
        "by hand, in an empty directory with the test as test:\n"
        "  sh -c 'echo out; echo err >&2; exit 2'\n"
        "  A='1 2' cat < test\n"
    )


JUDGE = """
class NoShouting:
    calls = 0

    def judge(self, outcomes, test):
        self.calls += 1
        if outcomes["run"].stdout.isupper():
            return f"it shouts at {test.strip()}"
"""


@pytest.mark.parametrize(("output", "signature"), [("HO", "it shouts at hello"), ("ho", None)])
def test_an_oracle_is_a_class_with_a_method(steps, output, signature):
    made = steps(
        step(f"echo {output}") + '[oracle]\npython = "judge.py:NoShouting"', judge_py=JUDGE
    )
    fault = run(made).fault
    assert (fault and fault.signature) == signature


def test_an_installed_package_offers_oracles_by_name(steps, tmp_path):
    entry = "no-shouting = judge:NoShouting"
    install(tmp_path, "swarmtest.oracles", entry, judge=JUDGE)
    made = steps(step("echo HO") + '[oracle]\npython = "no-shouting"')
    assert run(made).fault.signature == "it shouts at hello"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "judge.py:Deaf",
            "class judge.py:Deaf is an incomplete oracle, it has no method judge: wri",
        ),
        (
            "judge.py:Mute",
            "class judge.py:Mute is an incomplete oracle, it has no method judge: wri",
        ),
        ("judge.py:Slow", r"judge.py:Slow\(\) raised TypeError"),
        ("judge.py:LIMIT", "LIMIT is neither a function nor a class with a method judge"),
        ("quiet", r"no oracle 'quiet' is installed \(write FILE.py:NAME for your own\)"),
    ],
)
def test_what_is_no_oracle_says_what_is_missing(steps, name, message):
    text = """
from swarmtest import Oracle

class Deaf:
    pass

class Mute(Oracle):
    def judge_(self, outcomes, test): pass

class Slow:
    def __init__(self, seconds): pass
    def judge(self, outcomes, test): pass

LIMIT = 7
"""
    with pytest.raises(UserError, match=rf"\[oracle\] python: {message}") as caught:
        steps(step("echo ho") + f'[oracle]\npython = "{name}"', judge_py=text)
    assert "\n" not in str(caught.value)
