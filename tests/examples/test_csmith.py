"""The example with csmith, gcc, clang and tcc really runs, and shows what its page says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from debian_packages import CSMITH, need

from swarmtest import Budget, Campaign, Verdict, open_store
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test, trial_key
from swarmtest.roles import Study
from swarmtest.strategies import Stream
from swarmtest.strategies import parse_strategy as strategy_named
from swarmtest.subjects import load_command_subject
from swarmtest.subjects.command.check import template_text
from swarmtest.subjects.command.subject import CommandSubject

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "csmith" / "csmith.toml"
REJECTED = "tcc: error: ',' expected (got \")\")"
PACKED = b"\n#pragma pack(push)"


@pytest.fixture(scope="module")
def subject() -> CommandSubject:
    """The example, with tcc built if it is not yet."""
    need(*CSMITH, "clang", "make", "dpkg-source")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    built = subprocess.run(
        ["sh", str(ROOT / "tools" / "tcc.sh")], env=environment, capture_output=True, text=True
    )
    if built.returncode:
        pytest.skip(f"needs tcc built from Debian's source: {built.stderr.strip()}")
    return load_command_subject(str(EXAMPLE))


def share_with_pragma(subject: CommandSubject, strategy: str, tests: int) -> float:
    """The share of a campaign's first programs that tcc will reject, of those that csmith makes."""
    chosen, stream, packed, made = strategy_named(strategy), Stream(0), 0, 0
    for trial in range(tests):
        stream.rekey(trial_key(0, trial))
        proposal = chosen.ask(subject.space, trial, stream)
        assert isinstance(proposal, Proposal)
        configuration = proposal.configuration
        program = subject.generated(configuration, seed_of_test(0, trial))
        made += not program.why_not
        packed += PACKED in program.content
    return packed / made


def test_it_has_as_many_features_as_the_paper_and_none_that_is_undefined(
    subject: CommandSubject,
) -> None:
    names = subject.space.feature_names
    assert 25 <= len(names) <= 35
    assert not {"float", "safe-math", "builtins"} & set(names)


def test_csmith_takes_all_forms_and_what_is_off_is_not_there(subject: CommandSubject) -> None:
    alone = subject.space.configuration(["argc"])
    used = [0] * len(subject.space.features)
    for seed in range(1, 6):
        made = subject.generated(alone, seed)
        assert not made.why_not
        text = made.content.decode()
        for number, form in enumerate(subject.spec.forms):
            assert form.appears is not None
            used[number] += len(form.appears.findall(text))
    present = {n for n, count in zip(subject.space.feature_names, used, strict=True) if count}
    # csmith's --no-muls leaves a multiplication here and there.
    assert present <= {"argc", "muls"}
    assert "argc" in present


def test_a_swarm_is_masked_less_often_than_the_default(subject: CommandSubject) -> None:
    """28% against 6% are expected, so 11 of 40 against 2: a tie or worse has odds of 1 in 240."""
    all_on = share_with_pragma(subject, "all-on", 40)
    swarm = share_with_pragma(subject, "coin", 40)
    assert all_on > swarm


def test_tcc_rejects_the_pragma_and_nothing_is_wrong_without_it(subject: CommandSubject) -> None:
    small = ["structs", "packed-struct", "longlong", "math64", "argc"]
    configuration = subject.space.configuration(small)
    results = {}
    for seed in range(1, 30):
        packed = PACKED in subject.generated(configuration, seed).content
        if packed not in results:
            results[packed] = subject.execute(configuration, seed)
        if len(results) == 2:
            break
    rejected, accepted = results[True], results[False]
    assert rejected.fault is not None
    assert rejected.fault.signature == REJECTED
    assert rejected.fault.kind == "message"
    assert accepted.fault is None
    assert accepted.cpu_seconds > 0.05  # five compilations and five programs


def test_a_program_that_gcc_rejects_does_not_count(subject: CommandSubject) -> None:
    test = subject.test_of(subject.space.configuration(["argc"]), 1)
    broken = test | {"text": test["text"] + "int f(void) { return nowhere; }\n"}
    assert subject.replay(test).verdict is Verdict.PASSED
    result = subject.replay(broken)
    assert result.verdict is Verdict.INVALID
    assert "gcc -O0" in result.missing
    pragma = test | {"text": "#pragma pack(push)\n" + test["text"]}
    assert subject.replay(pragma).verdict is Verdict.FAILED


def test_a_campaign_covers_tcc_and_keeps_what_it_found(
    subject: CommandSubject, tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "store.db")) as store:
        budget = Budget(tests=6)
        outcome = Campaign(str(EXAMPLE), "coin", budget, seed=3, workers=1, store=store).run()
        study = Study(store, [outcome.campaign])
        lines = [target for target in study.targets.values() if target.kind == "line"]
    assert outcome.progress.tests == 6
    assert outcome.progress.cpu_seconds > 1
    # Parsing csmith.h alone takes tcc through some 2,900 of its lines.
    assert len(lines) > 2_500
    assert any("tccpp.c:" in line.name for line in lines)


def test_check_says_which_header_gcc_does_not_find_and_what_has_it(
    tmp_path: Path, swarmtest: Callable[..., Any], refused: Callable[..., str]
) -> None:
    """Csmith is there, its headers are not: as with half of the packages."""
    need(*CSMITH)
    text = template_text("csmith-gcc")
    assert "apt-get install csmith libcsmith-dev gcc libc6-dev" in text
    hidden = text.replace("-I/usr/include/csmith", f"-I{tmp_path}")
    (tmp_path / "csmith-gcc.toml").write_text(hidden)
    line = "fatal error: csmith.h: No such file or directory (apt-get install libcsmith-dev)"
    checked = swarmtest("check", "csmith-gcc.toml", cwd=tmp_path)
    refused(checked, "none of 8 tests was valid: step gcc -O0: exit status 1: test.c:", line)
    run = swarmtest("run", "csmith-gcc.toml", "--tests", 2, cwd=tmp_path)
    assert line in run.stdout + run.stderr
