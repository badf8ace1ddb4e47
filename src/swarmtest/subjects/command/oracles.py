"""Decide the verdict on a test from the outcomes of its steps, and describe its fault.

A test shows at most one fault. The oracles are applied in this order, and the first that answers
counts:

1. a step that says the test is invalid: then nothing else counts;
2. crashes, in the order of the steps: a message that a pattern or a recogniser knows, or a signal;
3. unexpected exit statuses, timeouts and missing programs, in the order of the steps;
4. steps that should agree and do not;
5. the Python oracle: a function, or an object with the method of `Oracle`.

So a fault that most tests show hides the rarer faults behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.core.messages.crashes import recognise, with_stack
from swarmtest.core.messages.shapes import normalised
from swarmtest.core.messages.telling_lines import telling_line
from swarmtest.languages.user_objects import entry_point, entry_point_names, load_object
from swarmtest.subjects.command.differences import difference
from swarmtest.subjects.command.specification import (
    OracleSection,
    Pattern,
    Specification,
    StepSection,
)
from swarmtest.subjects.command.step_runner import StepOutcome, said_by, signal_name

ENTRY_POINTS = "swarmtest.oracles"
"""The group in which installed packages offer oracles by name."""

Check = Callable[[Mapping[str, StepOutcome], str], object]
"""A Python oracle: a function of the outcomes by step name and of the test's text. It returns None
or a fault's signature, or fails an assertion."""


class Oracle:
    """The base class of an oracle, which decides whether the outcomes of the steps are a failure.

    Write one method, `judge`. Name the class in a TOML file,
    ``[oracle] python = "judge.py:NoWarnings"``; it is called without arguments, once in each
    process. A function with the parameters of `judge`, and a class that has `judge` but does not
    derive from `Oracle`, are oracles too.

    >>> class NoWarnings(Oracle):
    ...     def judge(self, outcomes, test):
    ...         for name, outcome in outcomes.items():
    ...             if "warning" in outcome.text:
    ...                 return f"{name} warns"
    >>> NoWarnings().judge({}, "int main() {}") is None
    True
    """

    def judge(self, outcomes: Mapping[str, StepOutcome], test: str) -> str | None:
        """Return None if all is well, or the fault's signature: the same text for the same bug.

        `outcomes` are the outcomes by step name, and `test` is the test's text. A failing assertion
        is a fault too; its message is the signature.
        """
        raise UserError(_incomplete(type(self).__name__))


def load_oracle(spec: Specification) -> Check | None:
    """Return the oracle that a TOML file names with ``python``; None if it names none."""
    reference = spec.oracle.python
    if not reference:
        return None
    where, _, name = reference.partition(":")
    try:
        if not name:
            return _as_check(_installed_oracle(reference), reference)
        if where.endswith(".py"):
            where = str(Path(spec.here) / where)
        return _as_check(load_object(f"{where}:{name}", "function", callable), reference)
    except UserError as error:
        raise UserError(f"{spec.path}: [oracle] python: {error}") from None


def _installed_oracle(name: str) -> object:
    oracle = entry_point(ENTRY_POINTS, name)
    if oracle is None:
        hint = did_you_mean(name, entry_point_names(ENTRY_POINTS))
        raise UserError(f"no oracle {name!r} is installed{hint} (write FILE.py:NAME for your own)")
    return oracle


def _as_check(oracle: object, reference: str) -> Check:
    """Return an oracle as a function; a class is called without arguments first."""
    if isinstance(oracle, type):
        if getattr(oracle, "judge", Oracle.judge) is Oracle.judge:
            raise UserError(_incomplete(reference))
        try:
            oracle = oracle()
        except Exception as error:
            raise UserError(f"{reference}() raised {message_of(error)}") from None
    check = getattr(oracle, "judge", oracle)
    if not callable(check):
        raise UserError(
            f"{reference.rpartition(':')[2]} is neither a function nor a class with a method judge"
        )
    return cast(Check, check)


def _incomplete(name: str) -> str:
    return (
        f"class {name} is an incomplete oracle, it has no method judge: write "
        "def judge(self, outcomes, test), which returns None or a signature"
    )


_NUMBERED_NAME = re.compile(r"\b([A-Za-z_]\w*?)\d+\b")
_TEMPORARY_PATH = re.compile(r"((?:/var|\B)/tmp)/[\w.+-]+")
_SHOWN = 3000
"""How much of a step's output is shown in the details of a fault."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on a test: a fault and its steps, or why the test is invalid; else it passed."""

    kind: str = ""
    signature: str = ""
    steps: tuple[str, ...] = ()
    invalid: str = ""


PASSED = Judgement()


class Judge:
    """The oracles of a subject."""

    def __init__(self, spec: Specification, check: Check | None) -> None:
        self._steps: Mapping[str, StepSection] = {step.name: step for step in spec.steps}
        self._oracle: OracleSection = spec.oracle
        self._check = check

    def judge(self, by_name: Mapping[str, StepOutcome], text: str) -> Judgement:
        """Return the verdict on a test, given the outcomes of its steps and its text."""
        outcomes = by_name.values()
        groups = self._oracle.differential
        # Functions, so that no oracle runs after one has answered.
        oracles: list[Callable[[], Judgement]] = [
            lambda: _first(self._invalid(outcome) for outcome in outcomes),
            lambda: _first(self._crash(outcome) for outcome in outcomes),
            lambda: _first(self._unexpected(outcome) for outcome in outcomes),
            lambda: _first(self._disagreement(group, by_name) for group in groups),
            lambda: self._python(by_name, text),
        ]
        return _first(judge() for judge in oracles)

    def _invalid(self, outcome: StepOutcome) -> Judgement:
        meaning = self._meaning(outcome)
        if meaning != "invalid":
            return PASSED
        said = said_by(outcome.stderr, outcome.stdout)
        return Judgement(invalid=f"step {outcome.name}: {outcome.how}{said}")

    def _meaning(self, outcome: StepOutcome) -> str:
        """Return what the end of a step means ("fail", "invalid", ...); empty if all was well."""
        step = self._steps[outcome.name]
        if outcome.ok or outcome.skipped:
            return ""
        if outcome.timed_out:
            return step.on_timeout
        return step.on_crash if outcome.signal else step.on_exit

    def _crash(self, outcome: StepOutcome) -> Judgement:
        message = self._recognised(outcome)
        if message:
            signature = f"{outcome.name}: {message}"
            signature = with_stack(signature, outcome.stack) if outcome.signal else signature
            return Judgement("message", signature, (outcome.name,))
        if outcome.out_of_memory and self._meaning(outcome) == "fail":
            return Judgement("memory", f"{outcome.name}: out of memory", (outcome.name,))
        if outcome.signal and self._meaning(outcome) == "fail":
            signature = with_stack(f"{outcome.name}: {signal_name(outcome.signal)}", outcome.stack)
            return Judgement("signal", signature, (outcome.name,))
        return PASSED

    def _recognised(self, outcome: StepOutcome) -> str:
        """Return the signature that a pattern or a recogniser finds in a step's output."""
        if outcome.skipped:
            return ""
        text = outcome.text
        for pattern in self._oracle.patterns:
            if not pattern.steps or outcome.name in pattern.steps:
                match = pattern.regex.search(text)
                if match:
                    return pattern_signature(pattern, match)
        crash = recognise(text, self._oracle.recognise)
        return crash.signature if crash else ""

    def _unexpected(self, outcome: StepOutcome) -> Judgement:
        if outcome.broken:
            return Judgement("exit", f"{outcome.name}: {outcome.skipped}", (outcome.name,))
        if self._meaning(outcome) != "fail" or outcome.signal:
            return PASSED
        if outcome.timed_out:
            return Judgement("timeout", f"{outcome.name}: timeout", (outcome.name,))
        line = telling(outcome)
        signature = f"{outcome.name}: exit status {outcome.status}{f': {line}' if line else ''}"
        return Judgement("exit", signature, (outcome.name,))

    def _disagreement(
        self, group: tuple[str, ...], by_name: Mapping[str, StepOutcome]
    ) -> Judgement:
        members = [by_name[name] for name in group]
        voters = [member for member in members if not member.skipped and not member.timed_out]
        signature = disagreement(voters)
        if not signature:
            return PASSED
        return Judgement("differential", signature, tuple(voter.name for voter in voters))

    def _python(self, by_name: Mapping[str, StepOutcome], text: str) -> Judgement:
        if self._check is None:
            return PASSED
        try:
            answer = self._check(by_name, text)
        except AssertionError as error:
            answer = normalised(str(error)) or "assertion failed"
        except Exception as error:
            raise UserError(
                f"the oracle {self._oracle.python} raised {message_of(error)}"
            ) from error
        if answer is None:
            return PASSED
        if not isinstance(answer, str) or not answer.strip():
            raise UserError(
                f"the oracle {self._oracle.python} answered {answer!r}: None if all is well, or "
                "the fault's signature as a text"
            )
        return Judgement("oracle", " ".join(answer.split()))


def _first(judgements: Iterable[Judgement]) -> Judgement:
    return next((judgement for judgement in judgements if judgement is not PASSED), PASSED)


def pattern_signature(pattern: Pattern, match: re.Match[str]) -> str:
    """Return the signature of a match: its named groups, or the whole match if it has none.

    >>> regex = re.compile(r"panic in (?P<where>\\w+) at (?P<line>\\d+)")
    >>> pattern_signature(Pattern("panic", regex), regex.search("panic in eval at 17"))
    'panic: eval, 17'
    """
    named = [part for part in match.groupdict().values() if part]
    parts = ", ".join(" ".join(part.split()) for part in named) or normalised(match[0])
    return f"{pattern.name}: {parts}" if pattern.name else parts


def telling(outcome: StepOutcome) -> str:
    """Return the most informative line of a step's errors, without what varies between tests.

    >>> telling(StepOutcome("cc", 1, stderr=b"test.c:3: error: bad 'x'\\ntest.c:9: error: worse"))
    "test.c:#: error: bad '…'"
    >>> telling(StepOutcome("cc", 1, stderr=b"ld: /tmp/ccQ3xb.o: undefined reference"))
    'ld: /tmp/…: undefined reference'
    """
    line = telling_line(outcome.stderr.decode(errors="replace"))
    return normalised(_NUMBERED_NAME.sub(r"\1#", _TEMPORARY_PATH.sub(r"\1/…", line)))


def disagreement(voters: Sequence[StepOutcome]) -> str:
    """Describe how steps that must agree disagree; return an empty text if they agree.

    The largest group of steps with the same answer is right, unless another group is as large.

    >>> votes = [StepOutcome("gcc", 0, stdout=b"1"), StepOutcome("clang", 0, stdout=b"1")]
    >>> disagreement([*votes, StepOutcome("tcc", 0, stdout=b"2")])
    'tcc disagrees with the majority'
    """
    answers: dict[tuple[int | None, int, bytes], list[StepOutcome]] = {}
    for voter in voters:
        answers.setdefault((voter.status, voter.signal, voter.stdout), []).append(voter)
    groups = list(answers.values())
    if len(groups) < 2:
        return ""
    right = max(groups, key=len)
    if sum(len(group) == len(right) for group in groups) == 1:
        wrong = [voter for voter in voters if voter not in right]
        verb = "disagrees" if len(wrong) == 1 else "disagree"
        text = f"{_names(wrong)} {verb} with the majority"
    else:
        right, wrong = groups[0], groups[1]
        text = " against ".join(map(_names, groups))
    how = difference(right[0], wrong[0])
    return f"{text}: {how}" if how else text


def _names(outcomes: Iterable[StepOutcome]) -> str:
    return ", ".join(outcome.name for outcome in outcomes)


def details_of(
    judgement: Judgement,
    outcomes: Mapping[str, StepOutcome],
    file: str,
    commands: Mapping[str, str],
) -> str:
    """Describe a fault for a person: its steps, their commands and output, how to repeat it.

    The text is the same whenever the same test runs.
    """
    parts = []
    for name in judgement.steps:
        outcome = outcomes[name]
        parts.append(f"step {name}: {outcome.how}\n$ {commands[name]}\n{_output(outcome)}")
    others = [outcome for name, outcome in outcomes.items() if name not in judgement.steps]
    if others:
        parts.append("".join(f"step {other.name}: {other.how}\n" for other in others))
    by_hand = "".join(f"  {line}\n" for line in commands.values())
    parts.append(f"by hand, in an empty directory with the test as {file}:\n{by_hand}")
    return "\n".join(parts)


def _output(outcome: StepOutcome) -> str:
    parts = []
    for output in (outcome.stdout, outcome.stderr):
        text = output.decode(errors="replace").rstrip()
        if len(text) > _SHOWN:
            text = f"... {len(text) - _SHOWN:,} characters before ...\n{text[-_SHOWN:]}"
        parts += [text + "\n"] if text else []
    return "".join(parts)
