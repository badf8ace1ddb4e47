"""Texts from grammars: how fast, against grammarinator and Hypothesis, and what swarms reach.

1. The same grammars (JSON, arithmetic programs) in Lark's and in ANTLR's language, with the same
   limit of tokens. Tokens and characters per CPU second, loading excluded, in turns.
2. SQL programs (examples/sql.lark) against SQLite: distinct pairs of neighbouring instructions that
   statements are compiled to, at equal CPU time: everything on, and coin tosses.
   `swarm_vs_default_rate`: tests per CPU second of coin tosses, over those with everything on.
   Tests of a swarm are a little shorter (their limit is the same), so
   `swarm_vs_default_characters` is the same for characters of SQL. `drawing_share`: the time to
   draw and plan a configuration of a coin toss, over that to grow, print and run its test.
3. Features that are on and cannot appear: coin tosses without constraints and with them.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import re
import sqlite3
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness import (
    arguments,
    cpu_seconds,
    median_ratio,
    print_figures,
    print_table,
    progress,
    require_modules,
    timed,
)

from swarmtest.campaign.executors.worker import CampaignJob, TrialRunner
from swarmtest.core.sampling import rates_for, toss
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import parse_strategy
from swarmtest.subjects.grammar.generator import load_grammar

EXAMPLES = Path(__file__).parents[1] / "examples"
TOKENS = 60
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\w+(?:\.\w+)?|\S')

LARK = {
    "json": r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
array: "[" [value ("," value)*] "]"
STRING: /"[a-zA-Z0-9 ]*"/
NUMBER: /[0-9]+/
%ignore " "
""",
    "calc": r"""
start: statement+
statement: NAME "=" expr ";" | "print" expr ";"
expr: expr "+" term | expr "-" term | term
term: term "*" factor | term "/" factor | factor
factor: NAME | NUMBER | "(" expr ")"
NAME: /[a-z][a-z0-9]*/
NUMBER: /[0-9]+/
%ignore " "
""",
}
ANTLR = {
    "json": r"""grammar json;
start: value;
value: object | array | STRING | NUMBER | 'true' | 'false' | 'null';
object: '{' (pair (',' pair)*)? '}';
pair: STRING ':' value;
array: '[' (value (',' value)*)? ']';
STRING: '"' [a-zA-Z0-9 ]* '"';
NUMBER: [0-9]+;
WS: ' ' -> skip;
""",
    "calc": r"""grammar calc;
start: statement+;
statement: NAME '=' expr ';' | 'print' expr ';';
expr: expr '+' term | expr '-' term | term;
term: term '*' factor | term '/' factor | factor;
factor: NAME | NUMBER | '(' expr ')';
NAME: [a-z] [a-z0-9]*;
NUMBER: [0-9]+;
WS: ' ' -> skip;
""",
}


def ours(name: str) -> Callable[[int], list[str]]:
    """So many texts from our generator."""
    generator = load_grammar(LARK[name], length=(1, TOKENS))
    weights = (1.0,) * len(generator.features)
    return lambda count: [generator.text(generator.grown(weights, seed)) for seed in range(count)]


def add_texts(texts: list[str], maker: Callable[[int], list[str]], count: int) -> None:
    """Generate so many texts."""
    texts.extend(maker(count))


def grammarinators(name: str, place: Path) -> Callable[[int], list[str]]:
    """So many texts from grammarinator, with the same limit of tokens."""
    from grammarinator.runtime import RuleSize, simple_space_serializer
    from grammarinator.tool import ProcessorTool

    (place / f"{name}.g4").write_text(ANTLR[name])
    ProcessorTool("py", str(place)).process([str(place / f"{name}.g4")], default_rule="start")
    sys.path.insert(0, str(place))
    made = getattr(importlib.import_module(f"{name}Generator"), f"{name}Generator")
    limit = RuleSize(depth=50, tokens=TOKENS)
    return lambda count: [simple_space_serializer(made(limit=limit).start()) for _ in range(count)]


def hypotheses(name: str) -> Callable[[int], list[str]]:
    """So many texts from Hypothesis; it has no limit of tokens but its own of bytes."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis.extra.lark import from_lark
    from lark import Lark

    strategy = from_lark(Lark(LARK[name]))

    def texts(count: int) -> list[str]:
        found: list[str] = []

        @settings(
            max_examples=count,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def collect(text: str) -> None:
            found.append(text)

        collect()
        return found

    return texts


def speeds(quick: bool) -> dict[str, dict[str, float]]:
    """Tokens per CPU second of each generator on each grammar."""
    rounds, counts = (2, (200, 100, 6)) if quick else (7, (2000, 1000, 200))
    found: dict[str, dict[str, float]] = {}
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for name in LARK:
            progress(f"speed: {name}")
            makers = {
                "swarmtest": ours(name),
                "grammarinator": grammarinators(name, Path(place)),
                "hypothesis": hypotheses(name),
            }
            rates: dict[str, list[tuple[float, float, float]]] = {who: [] for who in makers}
            for _ in range(rounds):
                for (who, maker), count in zip(makers.items(), counts, strict=True):
                    texts: list[str] = []
                    seconds = timed(partial(add_texts, texts, maker, count))
                    tokens = sum(len(TOKEN.findall(text)) for text in texts)
                    rates[who].append(
                        (tokens / seconds, sum(map(len, texts)) / seconds, tokens / len(texts))
                    )
            found[name] = {}
            for who, measured in rates.items():
                tokens, characters, size = (
                    statistics.median(m) for m in zip(*measured, strict=True)
                )
                found[name][who] = tokens
                rows.append((name, who, f"{tokens:,.0f}", f"{characters:,.0f}", f"{size:.1f}"))
    print_table(("grammar", "generator", "tokens/s", "characters/s", "tokens per text"), rows)
    return found


def instruction_pairs(database: sqlite3.Connection, program: str) -> set[tuple[str, str]]:
    """The neighbouring instructions that a program's statements are compiled to."""
    found: set[tuple[str, str]] = set()
    for statement in filter(str.strip, program.split(";")):
        try:
            rows = database.execute(f"EXPLAIN {statement}").fetchall()
            database.execute(statement).fetchmany(100)
        except sqlite3.Error:
            continue
        found |= set(itertools.pairwise(row[1] for row in rows))
    return found


@dataclass
class Reached:
    """What a strategy reached in its CPU time, and what the time went to."""

    pairs: set[tuple[str, str]] = field(default_factory=set)
    tests: int = 0
    characters: int = 0
    drawing: float = 0.0
    """CPU seconds to draw configurations."""
    planning: float = 0.0
    """CPU seconds to find which part of the grammar a configuration leaves."""
    testing: float = 0.0
    """CPU seconds to grow, print and run the texts."""

    @property
    def seconds(self) -> float:
        """All CPU seconds."""
        return self.drawing + self.planning + self.testing


_AT_ONCE = 100
"""Trials of a batch; those of a campaign have a few hundred tests of a millisecond."""


def reached(strategy: str, seconds: float, seed: int) -> Reached:
    """What tests reach in so much CPU time, drawing included, as the worker of a campaign does."""
    import sql

    subject = sql.sql
    runner = TrialRunner(CampaignJob(subject, parse_strategy(strategy), seed))
    found = Reached()
    generator = subject.generator
    while found.seconds < seconds:
        start = cpu_seconds()
        trials = range(found.tests, found.tests + _AT_ONCE)
        proposals = list(runner.proposals(trials))
        drawn = cpu_seconds()
        plans = [generator.plan_for(proposal.configuration) for proposal in proposals]
        planned = cpu_seconds()
        for trial, plan in zip(trials, plans, strict=True):
            text = generator.text(generator.grow(plan, seed * 1_000_003 + trial))
            database = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
            database.set_progress_handler(lambda: 1, sql.STEPS)
            database.executescript(sql.TABLES)
            found.pairs |= instruction_pairs(database, text)
            database.close()
            found.characters += len(text)
        found.drawing += drawn - start
        found.planning += planned - drawn
        found.testing += cpu_seconds() - planned
        found.tests += _AT_ONCE
    return found


def swarms(quick: bool) -> dict[str, list[Reached]]:
    """Run each strategy with several seeds, and show the medians."""
    sys.path.insert(0, str(EXAMPLES))
    seconds, seeds = (0.4, 1) if quick else (8.0, 5)
    found: dict[str, list[Reached]] = {"all-on": [], "coin": [], "layered": []}
    reached("layered", 0.01, 0)  # what is imported and built once is no part of a rate
    gc.freeze()  # as a worker does before its first test
    for seed in range(seeds):
        for strategy, results in found.items():
            progress(f"what swarms reach: {strategy}, seed {seed}")
            results.append(reached(strategy, seconds, seed))
    head = (
        *("strategy", "instruction pairs", "over runs", "tests", "tests/s", "characters/s"),
        *("drawing, us", "planning, us", "making and running, us"),
    )
    print_table(head, [_row(strategy, results) for strategy, results in found.items()])
    return found


def _row(strategy: str, results: list[Reached]) -> tuple[str, ...]:
    """A line of the table: medians over the runs of a strategy."""
    pairs = [len(r.pairs) for r in results]
    medians = [
        statistics.median(column)
        for column in zip(
            *(
                (
                    r.tests,
                    r.tests / r.seconds,
                    r.characters / r.seconds,
                    1e6 * r.drawing / r.tests,
                    1e6 * r.planning / r.tests,
                    1e6 * r.testing / r.tests,
                )
                for r in results
            ),
            strict=True,
        )
    ]
    reach = (f"{statistics.median(pairs):,.0f}", f"{min(pairs)} to {max(pairs)}")
    return (strategy, *reach, *(f"{median:,.0f}" for median in medians))


def without_effect(quick: bool) -> dict[str, float]:
    """Of the features that coin tosses turn on in SQL, the share that cannot appear."""
    progress("features without effect")
    generator = load_grammar(EXAMPLES / "sql.lark")
    free = Space(generator.features)
    tied = Space(generator.features, generator.constraints)
    shares, rows = {}, []
    for p in (0.5, 0.2):
        for name, space in (("free", free), ("constrained", tied)):
            on = lost = 0
            for trial in range(50 if quick else 1000):
                bits = toss(space, rates_for(space, p), Stream(1, trial)).configuration.bits
                on += bits.bit_count()
                lost += (bits & ~generator.graph.effective(bits)).bit_count()
            shares[f"{name}_{p}"] = lost / on
            rows.append((f"coin:p={p}, {name}", f"{lost / on:.1%}"))
    print_table(("SQL, 50 configurations" if quick else "SQL, 1000", "on without effect"), rows)
    return shares


def main() -> None:
    """All three."""
    warnings.simplefilter("ignore")
    options = arguments(__doc__)
    require_modules(
        {
            "lark": "'swarmtest[grammar]'",
            "grammarinator": "'swarmtest[antlr]'",
            "hypothesis": "hypothesis",
        }
    )
    rates = speeds(options.quick)
    print()
    runs = swarms(options.quick)
    pairs = {s: statistics.median(len(r.pairs) for r in results) for s, results in runs.items()}
    rate = {s: [r.tests / r.seconds for r in results] for s, results in runs.items()}
    text = {s: [r.characters / r.seconds for r in results] for s, results in runs.items()}
    print()
    shares = without_effect(options.quick)
    print_figures(
        {
            "tokens_per_second": {n: round(r["swarmtest"]) for n, r in rates.items()},
            "vs_grammarinator": min(r["swarmtest"] / r["grammarinator"] for r in rates.values()),
            "vs_hypothesis": min(r["swarmtest"] / r["hypothesis"] for r in rates.values()),
            "pairs": pairs,
            "coin_vs_all_on": pairs["coin"] / pairs["all-on"],
            "layered_vs_all_on": pairs["layered"] / pairs["all-on"],
            "swarm_vs_default_rate": round(median_ratio(rate["coin"], rate["all-on"]), 3),
            "swarm_vs_default_characters": round(median_ratio(text["coin"], text["all-on"]), 3),
            "drawing_share": round(
                statistics.median((r.drawing + r.planning) / r.testing for r in runs["coin"]), 3
            ),
            "without_effect": shares,
        }
    )


if __name__ == "__main__":
    main()
