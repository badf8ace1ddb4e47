"""Random small grammars, and what can be said about them without any of our algorithms."""

from __future__ import annotations

from hypothesis import strategies as st

from swarmtest.subjects.grammar.model import Grammar, Repeat, RuleReference, base_of

TOKENS = ['"a"', '"b"', '"("', '")"', "WORD"]
RULES = ["start", "p", "q"]


@st.composite
def lark_texts(draw: st.DrawFn) -> str:
    """A Lark grammar of up to three rules, in which `start` can be finished."""
    rules = []
    for name in RULES:
        ways = draw(st.lists(alternatives(), min_size=1, max_size=3, unique=True))
        if name == "start":
            ways.append('"x"')
        rules.append(f"{name}: {' | '.join(dict.fromkeys(ways))}")
    return "\n".join([*rules, "WORD: /[c-e]+/", "%ignore / +/"]) + "\n"


@st.composite
def alternatives(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.sampled_from([*TOKENS, *RULES]), min_size=1, max_size=3))
    signs = [draw(st.sampled_from(["", "", "", "?", "*", "+"])) for _ in parts]
    return " ".join(part + sign for part, sign in zip(parts, signs, strict=True))


def finished_rules(grammar: Grammar, on: set[str]) -> set[int]:
    """The rules that can be finished with some features, by trying until nothing changes."""
    finished: set[int] = set()
    while True:
        before = len(finished)
        for alternative in grammar.alternatives:
            if alternative.feature and alternative.feature not in on:
                continue
            needed = [base_of(i) for i in alternative.items if not _may_be_left_out(i)]
            if all(base.rule in finished for base in needed if isinstance(base, RuleReference)):
                finished.add(alternative.rule)
        if len(finished) == before:
            return finished


def possible_features(grammar: Grammar, on: set[str]) -> set[str]:
    """The features that some text made with those in `on` has."""
    finished = finished_rules(grammar, on)
    if 0 not in finished:
        return set()
    reached, found, waiting = {0}, set(), [0]
    while waiting:
        for alternative in grammar.rules[waiting.pop()].alternatives:
            if alternative.feature and alternative.feature not in on:
                continue
            needed = [base_of(i) for i in alternative.items if not _may_be_left_out(i)]
            if any(base.rule not in finished for base in needed if isinstance(base, RuleReference)):
                continue
            found |= {alternative.feature} - {""}
            for item in alternative.items:
                base = base_of(item)
                if isinstance(item, Repeat) and item.feature:
                    if item.feature not in on or (
                        isinstance(base, RuleReference) and base.rule not in finished
                    ):
                        continue
                    found.add(item.feature)
                if (
                    isinstance(base, RuleReference)
                    and base.rule in finished
                    and base.rule not in reached
                ):
                    reached.add(base.rule)
                    waiting.append(base.rule)
    return found


def _may_be_left_out(item: object) -> bool:
    return isinstance(item, Repeat) and item.low == 0
