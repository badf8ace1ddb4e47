"""``swarmtest plan``: how many tests until features come together in one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import click

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import format_percent, percent_interval, plural, whole_number
from swarmtest.core.space import Space
from swarmtest.plan.combinations import Combination
from swarmtest.plan.planning import (
    BOUND,
    EXACT,
    CombinationPlanner,
    PlanAnswer,
    PlanQuestion,
    Range,
)
from swarmtest.store import open_store
from swarmtest.strategies.strategy import parse_strategy, strategy_text
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import usual_strategy
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import store_option
from swarmtest.ui.terminal.text import json_text

_MOST_TESTS = 10**15


@click.command(cls=HelpfulCommand)
@click.argument(
    "path", metavar="[PATH[::MACHINE]]", required=False, shell_complete=completion.files
)
@click.option(
    "--together",
    metavar="NAME,...",
    help="Features that one test must contain; -NAME is a feature it must not contain.",
)
@click.option(
    "--ways", type=int, metavar="K", help="Cover all combinations of K features, each on or off."
)
@click.option("--on-only", is_flag=True, help="With --ways: only the combinations with all K on.")
@click.option("-n", "--tests", type=int, metavar="N", help="Ask: how likely within N tests?")
@click.option(
    "--chance",
    metavar="CHANCE",
    help="Print how many tests give this chance, such as 0.99 or 99%.  [default: 95%]",
)
@click.option(
    "-s",
    "--strategy",
    shell_complete=completion.strategies,
    metavar="NAME[:KEY=VALUE,...]",
    help="The strategy that chooses configurations.  [default: as for run; coin with --features]",
)
@click.option(
    "--features",
    type=int,
    metavar="N",
    help="Plan for N features, without a PATH. --together then takes counts: 5 on, or 5,-2.",
)
@click.option(
    "--api", is_flag=True, help="PATH is MODULE:CLASS; plan for the public methods of the class."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def plan(path: str | None, **options: Any) -> None:
    """Compute how many tests it takes until certain features come together in one test.

    \b
    swarmtest plan fs.py --together open,-close          tests for a chance of 95%
    swarmtest plan fs.py --together open,-close -n 1000  the chance in 1,000 tests
    swarmtest plan fs.py --ways 3                        all combinations of three
    swarmtest plan --features 23 --together 5            five given features of 23
    swarmtest plan --features 23 --ways 3 --chance 99%   all threes of 23 features

    For coin tosses the answer is exact. Other strategies, and constraints, are simulated.
    """
    question = _question(options)
    name, space, usual = _space(path, options)
    strategy = parse_strategy(options["strategy"] or usual)
    what, answers = _answers(CombinationPlanner(space, strategy), question, options)
    text = strategy_text(strategy)
    if options["as_json"]:
        head = {"subject": name, "features": len(space.features), "strategy": text, "what": what}
        results = [answer.to_json() for answer in answers]
        click.echo(json_text(head | {"question": vars(question), "answers": results}))
        return
    features = plural(len(space.features), "feature")
    title = f"{name}: {features}, strategy {text}" if name else f"{features}, strategy {text}"
    click.echo(plan_text(f"{title}\n{what}", answers, question.wished))
    _print_time(options["store"], name, answers)


def _question(options: dict[str, Any]) -> PlanQuestion:
    n, chance = options["tests"], options["chance"]
    if n is not None and chance is not None:
        raise UserError("-n asks how likely, --chance asks how many tests: give one of them")
    if n is not None and not 1 <= n <= _MOST_TESTS:
        raise UserError(f"-n is at least 1 test and at most {_MOST_TESTS:,}, not {n}")
    return PlanQuestion(n, _parsed_chance(chance or "95%"))


def _answers(
    planner: CombinationPlanner, question: PlanQuestion, options: dict[str, Any]
) -> tuple[str, list[PlanAnswer]]:
    """Return the question in words, and the answers to it."""
    together, k, on_only = options["together"], options["ways"], options["on_only"]
    if (together is None) == (k is None):
        raise UserError("say what is to be in the tests: --together NAME,... or --ways K")
    if together is None:
        each = "all on" if on_only else "each on or off"
        answers = planner.ways(k, question, on_only=on_only)
        return f"all combinations of {plural(k, 'feature')}, {each}", answers
    if on_only:
        raise UserError("--on-only goes with --ways")
    read = _combination_of_names if options["features"] is None else _combination_of_counts
    combination = read(together, planner.space)
    return f"tests {combination}", [planner.together(combination, question)]


def _space(path: str | None, options: dict[str, Any]) -> tuple[str, Space, str]:
    """Return a name for the subject, its space, and its usual strategy."""
    count = options["features"]
    if (path is None) == (count is None):
        raise UserError("plan for a PATH, or without one for a number of features: --features N")
    if path is not None:
        subject = SubjectReference(path, options["api"]).load()
        return subject.name, subject.space, usual_strategy(subject)
    if not 1 <= count <= 10_000:
        raise UserError(f"--features is a number from 1 to 10,000, not {count}")
    return "", Space([f"f{number}" for number in range(1, count + 1)]), "coin"


def _parsed_chance(text: str) -> float:
    try:
        chance = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        chance = math.nan
    if not 0 < chance < 1:
        raise UserError(f"--chance is above 0 and below 1, like 0.95 or 95%, not {text}")
    return chance


def _combination_of_names(text: str, space: Space) -> Combination:
    words = _words(text)
    on = tuple(word for word in words if not word.startswith("-"))
    off = tuple(word.removeprefix("-") for word in words if word.startswith("-"))
    for name in [*on, *off]:
        if name not in space.feature_number:
            near = did_you_mean(name, space.feature_names)
            raise UserError(f"--together: there is no feature {name!r}{near}")
    if not words or len({*on, *off}) < len(words):
        raise UserError(f"--together names each feature once, on or off, not {text!r}")
    return Combination(on, off)


def _combination_of_counts(text: str, space: Space) -> Combination:
    """Return a combination of so many features: ``5`` on, or ``5,-2`` for two others off.

    Without names, all features are alike.
    """
    with contextlib.suppress(ValueError):
        counts = [int(word) for word in _words(text)]
        ons = [count for count in counts if count > 0]
        offs = [-count for count in counts if count < 0]
        on, off = sum(ons), sum(offs)
        if len(ons) <= 1 and len(offs) <= 1 and 1 <= on + off <= len(space.features):
            return Combination(space.feature_names[:on], space.feature_names[on : on + off])
    raise UserError(
        "--together, with --features, is how many are on and -how many are off, like 5 or 5,-2, "
        f"at most {len(space.features)} together, not {text!r}"
    )


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _print_time(store: str | None, subject: str, answers: list[PlanAnswer]) -> None:
    """Print how long that takes, if the store has a campaign of this subject."""
    answer = answers[0]
    tests = answer.needed.high if answer.needed else answer.tests
    with (
        contextlib.suppress(UserError),
        open_store(store, must_exist=True, read_only=True) as opened,
    ):
        campaigns = [r for r in opened.campaigns() if r.subject == subject and r.wall_seconds]
        if campaigns and tests:
            rate = opened.summary(campaigns[-1].id)["trials"] / campaigns[-1].wall_seconds
            take = "takes" if tests == 1 else "take"
            click.echo(
                f"\n{plural(tests, 'test')} {take} {tests / rate:.1f} s at the {rate:,.0f} tests/s "
                f"of campaign {campaigns[-1].id}"
            )


# Answers as text.


def plan_text(head: str, answers: Sequence[PlanAnswer], wished: float) -> str:
    """Return the question, and the answer of each method."""
    return "\n\n".join([head, *("\n".join(_lines(answer, wished)) for answer in answers)])


def _lines(answer: PlanAnswer, wished: float) -> list[str]:
    rows = []
    if answer.share is not None:
        label = "rarest of them" if answer.method == BOUND else "has it"
        rows.append((label, _share(answer.share)))
    if answer.needed is not None:
        rows.append((f"for {format_percent(wished, 2)}", _needed(answer)))
    if answer.chance is not None:
        rows.append((f"within {answer.tests:,}", _chance(answer)))
    width = max(len(label) for label, _ in rows)
    method = {EXACT: "exact", BOUND: "by the union bound"}.get(answer.method, answer.method)
    return [f"{method}:", *(f"  {label:<{width}}  {text}" for label, text in rows)]


def _share(share: Range) -> str:
    low, high = share.low or 0.0, share.high or 0.0
    if low == high == 1:
        return "every test"
    if share.is_exact:
        every = whole_number(1 / low) if low < 0.01 else f"{1 / low:.3g}"
        return f"1 test in {every} ({format_percent(low, 1)})"
    return f"{percent_interval(low, high, 1)} of the tests"


def _chance_percent(chance: float) -> str:
    """Format a chance, with more decimals if it is nearly certain."""
    return format_percent(chance, 2 if chance > 0.95 else 1)


def _chance(answer: PlanAnswer) -> str:
    assert answer.chance is not None
    low, high = answer.chance.low or 0.0, answer.chance.high or 0.0
    if answer.method == BOUND:
        return f"at least {_chance_percent(low)} likely" if low else "no bound: too few tests"
    if low == high == 1:
        return "certain"
    if not answer.chance.is_exact:
        return f"{percent_interval(low, high, 1)} likely"
    on_average = (answer.tests or 0) * ((answer.share.low if answer.share else 0) or 0)
    return f"{_chance_percent(low)} likely; {on_average:,.3g} of them have it on average"


def _needed(answer: PlanAnswer) -> str:
    assert answer.needed is not None
    low, high = answer.needed.low, answer.needed.high
    if answer.method == BOUND and high is not None:
        return f"{plural(high, 'test')} {'is' if high == 1 else 'are'} enough"
    if low is None:
        return "more tests than could be simulated, if ever"
    if high is None:
        return f"{plural(low, 'test')} or more"
    return plural(high, "test") if low == high else f"{whole_number(low)} to {plural(high, 'test')}"
