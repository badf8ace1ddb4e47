"""Find mistakes in a command subject before a campaign runs, and read the TOML templates.

The checks go from cheap to expensive: are the commands installed, can every feature be chosen, does
the generator accept every feature, does any test get through all steps? The templates at the
end are the commented TOML files that `swarmtest init` writes; they run without changes.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import solve
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.messages.telling_lines import telling_line
from swarmtest.core.result import Result, Verdict
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.subjects.command.debian_packages import how_to_install, remedy_for
from swarmtest.subjects.command.generator import words_of
from swarmtest.subjects.command.specification import CommandCall, Specification
from swarmtest.subjects.command.step_runner import detected, program_of
from swarmtest.subjects.command.toml_reader import filled, placeholders

if TYPE_CHECKING:
    from swarmtest.subjects.command.subject import CommandSubject


_SEEDS = (1, 2)
"""A feature is reported only if the generator fails for each of these seeds.

With one seed alone, the failure could be due to that test and not to the feature."""

_TRIES = 8
"""The number of tests to run; at least one of them must be valid."""

_TEMPLATES = files("swarmtest.subjects.command") / "templates"


def problems_of(subject: CommandSubject, thorough: bool) -> list[str]:
    """Return the problems of a subject, one line each.

    The quick check looks for missing commands and for a generator that produces no test. With
    `thorough`, also check that every feature can be chosen, try the generator with each feature
    off and with the same seed twice, and run tests until one gets through all steps.
    """
    spec = subject.spec
    problems = [f"{spec.path}: {problem}" for problem in _command_problems(spec)]
    if problems:
        return problems
    problems = list(_space_problems(subject.space)) if thorough else []
    problems += _generator_problems(subject, thorough)
    if thorough and not problems:
        problems += _step_problems(subject)
    return [f"{spec.path}: {problem}" for problem in problems]


def _space_problems(space: Space) -> Iterator[str]:
    """Yield the features that can never be on: a mistake in requires, excludes or mandatory."""
    clauses = [space.never_empty, *space.clauses]
    free = 0
    for number, name in enumerate(space.feature_names):
        on, off = (solve(clauses, *bits) for bits in ((1 << number, 0), (0, 1 << number)))
        if on is None:
            yield f"feature {name!r} can never be on: its requires and excludes contradict"
        free += on is not None and off is not None
    if not free and not space.settings:
        yield "there is only one configuration: no feature can be left out"


def _generator_problems(subject: CommandSubject, thorough: bool) -> list[str]:
    base = fullest(subject.space)
    test = subject.generated(base, 1)
    rejected = list(_rejected(subject, 0 if test.why_not else base.bits)) if thorough else []
    if test.why_not:
        # Naming the features at fault says more than the message about all of them. But if every
        # feature is rejected, the cause is not a feature.
        specific = 0 < len(rejected) < len(subject.space.features)
        return rejected if specific else [f"there is no test with all features on: {test.why_not}"]
    if thorough and subject.generated(base, 1).content != test.content:
        return [
            "the generator gives another test for the same seed, so a test could not be made "
            "again; does all that it draws come from {seed}?"
        ]
    return rejected


def _step_problems(subject: CommandSubject) -> list[str]:
    """Run a few tests; return the most common reason if none of them is valid."""
    reasons: Counter[str] = Counter()
    for number in range(_TRIES):
        configuration = _sample_configuration(subject.space, number)
        why = _why_useless(subject.execute(configuration, number + 1))
        if not why:
            return []
        reasons[why] += 1
    return [f"none of {_TRIES} tests was valid: {reasons.most_common(1)[0][0]}"]


def _sample_configuration(space: Space, number: int) -> Configuration:
    """Return the configuration of a test: all features at first, then each with even odds."""
    if number < len(_SEEDS):
        return fullest(space)
    stream = Stream(0, number)
    wanted = sum((stream.named(name) < 0.5) << i for i, name in enumerate(space.feature_names))
    bits = _filled_up(space, 0, 0, wanted)
    assert bits is not None, "a space whose constraints clash is refused when it is made"
    return Configuration(space, bits, None, space.default_settings)


def _why_useless(result: Result) -> str:
    """Return why a test says nothing about the program; empty if it does say something.

    A test is useless if it is invalid, or if a step failed because something is not installed.
    """
    if result.verdict == Verdict.INVALID:
        return result.missing
    if result.fault is None or result.fault.kind != "exit":
        return ""
    step, _command, output = result.fault.details.split("\n", 2)
    line = telling_line(output)
    remedy = remedy_for(line)
    return f"{step}: {line} ({remedy})" if remedy else ""


def _command_problems(spec: Specification) -> Iterator[str]:
    calls = [("[generate]", spec.generate.call)] if spec.generate.call else []
    calls += [(f"step {step.name!r}", step.call) for step in spec.steps]
    test_file = f"test{spec.generate.suffix}"
    for where, call in calls:
        problem = _missing_command(call, spec.here) or _misplaced_word(call, spec.here, test_file)
        if not problem and call.cwd and not placeholders([call.cwd.replace("{here}", "")]):
            directory = filled(call.cwd, {"here": spec.here})
            if not os.path.isdir(directory):
                problem = f"cwd: there is no directory {directory}"
        if problem:
            yield f"{where}: {problem}"
    for step in spec.steps:
        if step.cover:
            try:
                program = program_of(step, spec.here)
                if step.cover == "auto":
                    detected(program, step.name)
            except UserError as error:
                yield str(error)
    yield from _missing_reducer(spec)


def _missing_command(call: CommandCall, here: str) -> str:
    word = filled(call.words[0], {"here": here})
    if placeholders([word]):
        return ""  # a placeholder has a value only once there is a test
    if "=" in word and os.sep not in word.partition("=")[0]:
        return f"{word!r} is not a command: set variables with env"
    if os.sep not in word:
        path = call.env.get("PATH")
        if shutil.which(word, path=path):
            return ""
        hint = (
            f"; {word} is in {here}, so write {{here}}/{word}"
            if os.access(os.path.join(here, word), os.X_OK)
            else how_to_install(word)
        )
        return f"the command {word!r} is not installed{hint}"
    if not os.path.isabs(word):
        if os.path.isfile(os.path.join(here, word)) and not call.cwd:
            return _write_here(word)
        return ""  # a path in the test's directory: an earlier step creates the program
    if not os.path.isfile(word):
        return f"there is no program {word}"
    if not os.access(word, os.X_OK):
        return f"{word} cannot be executed: chmod +x {shlex.quote(word)}"
    return ""


def _misplaced_word(call: CommandCall, here: str, test_file: str) -> str:
    """Report a file beside the TOML file that a command would look for in the test's directory."""
    if call.cwd:
        return ""
    for word in call.words[1:]:
        looks_like_file = "." in word or os.sep in word
        relative = looks_like_file and not os.path.isabs(word) and not placeholders([word])
        if relative and word != test_file and Path(here, word).is_file():
            return _write_here(word)
    return ""


def _write_here(word: str) -> str:
    name = word.removeprefix("./")
    return (
        f"{word!r} is beside the TOML file, but commands run in another directory: "
        f"write {{here}}/{name}"
    )


def _missing_reducer(spec: Specification) -> Iterator[str]:
    reduce = spec.reduce
    name = reduce.command[0] if reduce.command else reduce.external
    if name in ("none", "auto"):
        return
    if not shutil.which(filled(name, {"here": spec.here})):
        yield f"[reduce]: the command {name!r} is not installed{how_to_install(name)}"


def _rejected(subject: CommandSubject, accepted: int) -> Iterator[str]:
    """Yield a line for each feature whose words the generator rejects.

    `accepted` are the features with which the generator has already produced a test. Each of these
    is tried off, with the other accepted ones on; every other feature is tried alone.
    """
    space = subject.space
    if subject.spec.generate.call is None:
        return  # a grammar's features add no words that a generator could reject
    everything = (1 << len(space.features)) - 1
    for number, name in enumerate(space.feature_names):
        bit = 1 << number
        if accepted & bit:
            how, bits = "off", _filled_up(space, 0, bit | everything & ~accepted, everything)
        else:
            how, bits = "alone", _filled_up(space, bit, 0, 0)
        why = _why_always_rejected(subject, bits) if bits is not None else ""
        if why:
            form = _shown_form(subject, number, float(how == "alone"))
            yield f"feature {name!r} {how}{form}: {why}"


def _shown_form(subject: CommandSubject, number: int, weight: float) -> str:
    forms = subject.spec.forms
    words = words_of(forms[number], weight) if number < len(forms) else []
    return f" ({shlex.join(words)})" if words else ""


def _why_always_rejected(subject: CommandSubject, bits: int) -> str:
    space = subject.space
    configuration = Configuration(space, bits, None, space.default_settings)
    why = ""
    for seed in _SEEDS:
        why = subject.generated(configuration, seed).why_not
        if not why:
            return ""
    return why


def fullest(space: Space) -> Configuration:
    """Return the configuration with all features; of those that exclude each other, the first.

    >>> from swarmtest import Feature
    >>> print(fullest(Space([Feature("a"), Feature("b", excludes=["a"]), Feature("c")])))
    a -b c
    """
    bits = _filled_up(space, 0, 0, (1 << len(space.features)) - 1)
    assert bits is not None, "a space whose constraints clash is refused when it is made"
    return Configuration(space, bits, None, space.default_settings)


def _filled_up(space: Space, true: int, false: int, wanted: int) -> int | None:
    """Return the bits of a configuration with some features fixed and the others as wanted.

    The features in `true` are on and those in `false` are off; each other feature is as in
    `wanted`, unless the constraints forbid that. None: the fixed features contradict.
    """
    clauses = [space.never_empty, *space.clauses]
    if solve(clauses, true, false) is None:
        return None
    for number in range(len(space.features)):
        bit = 1 << number
        if (true | false) & bit:
            continue
        on, off = (true | bit, false), (true, false | bit)
        first, second = (on, off) if wanted & bit else (off, on)
        true, false = first if solve(clauses, *first) is not None else second
    return true


# Templates for `swarmtest init`.


def template_names() -> list[str]:
    """Return the names of all templates, sorted.

    >>> "script" in template_names()
    True
    """
    file_names = (file.name for file in _TEMPLATES.iterdir() if file.name.endswith(".toml"))
    return sorted(name.removesuffix(".toml") for name in file_names)


def template_text(name: str) -> str:
    """Return the text of a template; its first line is a comment that says what it is for."""
    if name not in template_names():
        raise UserError(f"no template {name!r}{did_you_mean(name, template_names())}")
    return (_TEMPLATES / f"{name}.toml").read_text()


def template_purpose(name: str) -> str:
    """Return what a template is for, in one line.

    >>> template_purpose("script")
    'A generator of your own with a switch for each feature, and a program to test.'
    """
    return template_text(name).partition("\n")[0].lstrip("# ")
