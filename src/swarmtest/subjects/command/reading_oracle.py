"""The part of a TOML file that says what a failure is."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.errors import did_you_mean
from swarmtest.messages import RECOGNISERS
from swarmtest.subjects.command.specification import MEANINGS, Oracle, Pattern
from swarmtest.subjects.command.toml_section import Section


def step_meanings(section: Section) -> dict[str, str]:
    """What a crash, an unexpected exit status and a timeout mean where a step does not say."""
    crash = section.raw("crash")
    if isinstance(crash, bool):
        meaning = "fail" if crash else "ignore"
    else:
        meaning = section.one_of("crash", MEANINGS, "fail")
    return {
        "crash": meaning,
        "exit": section.one_of("exit", MEANINGS, "fail"),
        "timeout": section.one_of("timeout", MEANINGS, "fail"),
    }


def read_oracle(section: Section, steps: Sequence[str]) -> Oracle:
    """The oracles beside those."""
    step_meanings(section)
    recognise = section.texts("recognise")
    for name in recognise:
        if name not in RECOGNISERS:
            near = did_you_mean(name, RECOGNISERS)
            raise section.error("recognise", f"no recogniser {name!r}{near}")
    oracle = Oracle(
        tuple(_read_pattern(one, steps) for one in section.sections("patterns")),
        recognise,
        _read_differential(section, steps),
        section.text("python"),
    )
    if oracle.python and oracle.python.count(":") != 1:
        raise section.error("python", "names a function: oracle.py:check")
    section.close()
    return oracle


def _read_pattern(section: Section, steps: Sequence[str]) -> Pattern:
    regex, name, searched = section.pattern("regex"), section.text("name"), section.texts("steps")
    if regex is None:
        raise section.missing("regex", "the regular expression to look for")
    pattern = Pattern(name, regex, searched)
    for step in pattern.steps:
        if step not in steps:
            raise section.error("steps", f"no step {step!r}{did_you_mean(step, steps)}")
    section.close()
    return pattern


def _read_differential(section: Section, steps: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    value = section.raw("differential")
    if value is None:
        return ()
    if not isinstance(value, list) or not value:
        raise section.error("differential", "a list of steps whose output must agree")
    groups = value if all(isinstance(one, list) for one in value) else [value]
    for group in groups:
        for name in group:
            if name not in steps:
                near = did_you_mean(str(name), steps)
                raise section.error("differential", f"no step {name!r}{near}")
            if group.count(name) > 1:
                raise section.error("differential", f"step {name!r} would vote twice")
        if len(group) < 2:
            raise section.error("differential", "needs two steps or more to compare")
    return tuple(tuple(group) for group in groups)
