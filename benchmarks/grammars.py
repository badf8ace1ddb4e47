"""Texts from grammars: how fast, against grammarinator and Hypothesis, and what swarms reach.

1. The same grammars (JSON, arithmetic programs) in Lark's and in ANTLR's language, with the same
   limit of tokens. Tokens and characters per CPU second, loading excluded, in turns.
2. SQL programs (examples/sql.lark) against SQLite: distinct pairs of neighbouring instructions that
   statements are compiled to, at equal CPU time: everything on, and coin tosses.
3. Features that are on and cannot appear: coin tosses without constraints and with them.
"""

from __future__ import annotations

import importlib
import itertools
import re
import sqlite3
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness import (
    arguments,
    cpu_seconds,
    print_figures,
    print_table,
    progress,
    require_modules,
    timed,
)

from swarmtest.core.sampling import Proposal, rates_for, toss
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


def reached(strategy: str, seconds: float, seed: int) -> tuple[int, int]:
    """Distinct pairs of instructions, and tests, in so much CPU time, drawing included."""
    import sql

    subject = sql.sql
    chooser = parse_strategy(strategy)
    found: set[tuple[str, str]] = set()
    start, trial = cpu_seconds(), 0
    while cpu_seconds() - start < seconds:
        answer = chooser.ask(subject.space, trial, Stream(seed, trial))
        configuration = answer.configuration if isinstance(answer, Proposal) else answer
        text = subject.test_of(configuration, seed * 1_000_003 + trial)["text"]
        database = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        database.set_progress_handler(lambda: 1, sql.STEPS)
        database.executescript(sql.TABLES)
        found |= instruction_pairs(database, text)
        database.close()
        trial += 1
    return len(found), trial


def swarms(quick: bool) -> dict[str, float]:
    """Median pairs of instructions of each strategy."""
    sys.path.insert(0, str(EXAMPLES))
    seconds, seeds = (0.4, 1) if quick else (8.0, 5)
    found: dict[str, list[tuple[int, int]]] = {"all-on": [], "coin": [], "layered": []}
    for seed in range(seeds):
        for strategy, results in found.items():
            progress(f"what swarms reach: {strategy}, seed {seed}")
            results.append(reached(strategy, seconds, seed))
    rows = [
        (
            strategy,
            f"{statistics.median(p for p, _ in results):,.0f}",
            f"{min(p for p, _ in results)} to {max(p for p, _ in results)}",
            f"{statistics.median(t for _, t in results):,.0f}",
        )
        for strategy, results in found.items()
    ]
    print_table(("strategy", "instruction pairs", "over runs", "tests"), rows)
    return {s: statistics.median(p for p, _ in results) for s, results in found.items()}


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
    pairs = swarms(options.quick)
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
            "without_effect": shares,
        }
    )


if __name__ == "__main__":
    main()
