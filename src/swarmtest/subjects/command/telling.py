"""What a person wants to see of a fault: the step, its command, its output, how to repeat it."""

from __future__ import annotations

from collections.abc import Mapping

from swarmtest.subjects.command.judging import Judgement
from swarmtest.subjects.command.outcomes import Outcome

_TAIL = 3000


def details_of(
    judgement: Judgement, outcomes: Mapping[str, Outcome], file: str, commands: Mapping[str, str]
) -> str:
    """The details of a fault, the same for the same test."""
    parts = []
    for name in judgement.steps:
        outcome = outcomes[name]
        parts.append(f"step {name}: {outcome.how}\n$ {commands[name]}\n{_output(outcome)}")
    others = [outcome for name, outcome in outcomes.items() if name not in judgement.steps]
    if others:
        parts.append("".join(f"step {one.name}: {one.how}\n" for one in others))
    by_hand = "".join(f"  {line}\n" for line in commands.values())
    parts.append(f"by hand, in an empty directory with the test as {file}:\n{by_hand}")
    return "\n".join(parts)


def _output(outcome: Outcome) -> str:
    parts = []
    for output in (outcome.stdout, outcome.stderr):
        text = output.decode(errors="replace").rstrip()
        if len(text) > _TAIL:
            text = f"... {len(text) - _TAIL:,} characters before ...\n{text[-_TAIL:]}"
        parts += [text + "\n"] if text else []
    return "".join(parts)
