"""What experiments on one failing test showed, as values: facts, each with its runs.

An `Explanation` is plain data. The store keeps it beside the reduction of its fault, in the same
table, under a criterion of its own (`EXPLAINED`), so showing it runs nothing and loads no subject.
`paragraph` says it in a few words.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from swarmtest.campaign.reduced_faults import EXPLAINED
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord

FORMAT = "swarmtest explanation 1"

SUPPRESSOR, IRRELEVANT, UNCLEAR, BLOCKS = "suppressor", "irrelevant", "unclear", "blocks"
TRIGGER = "trigger"
Checked = TypeVar("Checked", bound=Any)
_NORMAL_95 = 1.959963984540054
"""How many standard deviations a two-sided 95% interval reaches."""


@dataclass(frozen=True)
class StepFact:
    """A step that the fault needs."""

    feature: str
    line: str
    """The step as code."""
    alternatives: tuple[str, ...] = ()
    """Other features that a step can have instead, and the fault still shows."""
    tried: int = 0
    """How many variants with another feature in its place were run."""
    is_needed: bool = True
    """Whether it can be left out at all: a rule that initialises a machine always runs."""
    alike: tuple[str, ...] = ()
    """Other features that fail in its place too, with the same type at a place of their own."""

    @property
    def choices(self) -> frozenset[str]:
        """The features that a step at this place may have."""
        return frozenset({self.feature, *self.alternatives, *self.alike})


@dataclass(frozen=True)
class OrderFact:
    """A step has to come before another one; steps are counted from 0."""

    before: int
    after: int
    runs: int


@dataclass(frozen=True)
class ValueFact:
    """What a value of a step has to be."""

    step: int
    label: str
    """The argument, as `Slot.label`."""
    kind: str
    """``any``, ``exactly``, ``at least``, ``at most``, ``from``, ``one of`` or ``some``."""
    text: str
    """The values in words, such as ``at least 3``."""
    kept: int
    runs: int


@dataclass(frozen=True)
class InsertionFact:
    """What inserting a step of a feature does to the fault."""

    feature: str
    role: str
    gone: int
    runs: int
    low: float
    high: float
    """Wilson's interval for the share of insertions after which the fault is gone."""
    gaps: tuple[int, ...] = ()
    """Before which steps an insertion made the fault disappear; empty: everywhere, or nowhere."""


@dataclass(frozen=True)
class RelationFact:
    """A relation between values that holds in failing variants and not in passing ones."""

    text: str
    precision: float
    """Of the fresh variants that fit all relations, the share that showed the fault."""
    recall: float
    """Of the fresh variants that showed the fault, the share that fits."""
    fitting: int
    shown: int
    """How many fresh variants fitted, and how many of those showed the fault."""


@dataclass(frozen=True)
class SettingFact:
    """What a setting of the test has to be."""

    name: str
    text: str
    kept: int
    runs: int


@dataclass(frozen=True)
class FreshFact:
    """What a feature does to newly generated tests: those of the confirmation, and one change."""

    feature: str
    is_added: bool
    """Whether the feature was added to the configuration; otherwise it was left out."""
    role: str
    hits: int
    tests: int
    low: float
    high: float
    """Wilson's interval for the share of tests that show the fault."""


@dataclass(frozen=True)
class OtherTests:
    """How many other failing tests of the fault, reduced, follow the same rule."""

    fitting: int
    tests: int
    shapes: tuple[str, ...] = ()
    """The steps of those that do not follow it."""


@dataclass(frozen=True)
class Confirmation:
    """How often tests that were generated from the explanation show the fault.

    >>> Confirmation(("push", "pop"), (2, 10), hits=3, tests=300, low=0.003, high=0.03).is_enough
    False
    """

    features: tuple[str, ...]
    steps: tuple[int, int] | None
    """The length of the tests; None: the subject's own."""
    hits: int
    tests: int
    low: float
    high: float
    before_hits: int = 0
    before_tests: int = 0
    """The same for the campaigns that found the fault."""
    is_reusing: bool = False
    """Whether arguments were often values that the same test had used before."""

    @property
    def is_enough(self) -> bool:
        """Whether it hit the fault often enough for the intervals of roles."""
        return self.hits >= 4


@dataclass(frozen=True)
class Explanation:
    """Everything that experiments on one failing test showed.

    >>> steps = (StepFact("push", "push(1)"), StepFact("pop", "pop()"))
    >>> Explanation("4ee18053", steps, order=(OrderFact(0, 1, 2),)).paragraph
    'needs push, then pop.'
    """

    fault: str
    steps: tuple[StepFact, ...] = ()
    order: tuple[OrderFact, ...] = ()
    """All pairs whose order matters; `chain` and `paragraph` leave out what follows from others."""
    values: tuple[ValueFact, ...] = ()
    relations: tuple[RelationFact, ...] = ()
    insertions: tuple[InsertionFact, ...] = ()
    settings: tuple[SettingFact, ...] = ()
    confirmation: Confirmation | None = None
    fresh: tuple[FreshFact, ...] = ()
    """What other features do to tests that are generated as for the confirmation."""
    others: OtherTests | None = None
    """What other failing tests of the fault show; None if there are none, or none was reduced."""
    same_as: tuple[str, ...] = ()
    """Other faults of the campaign with the same rule, which are probably the same bug."""
    kept: int = 0
    variants: int = 0
    """How many variants were run in which nothing that was found to matter was changed, and how
    many of these showed the fault (`kept`)."""
    runs: int = 0
    cpu_seconds: float = 0.0
    seed: int = 0
    is_ordered: bool = True
    """Whether the order of all steps was looked at."""
    are_values_known: bool = True
    """Whether all values were looked at."""
    is_derivation: bool = False
    """Whether the steps are productions of a grammar."""
    is_schedule: bool = False
    """Whether the steps are switches between threads."""
    is_complete: bool = True
    """Whether all experiments were made; False if the budget was spent before."""
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> dict[str, int]:
        """How often each needed feature occurs."""
        return dict(Counter(step.feature for step in self.steps if step.is_needed))

    @property
    def named(self) -> frozenset[str]:
        """The needed features and those that can stand in for them."""
        others = (other for step in self.steps for other in step.alternatives)
        return frozenset(self.needed) | frozenset(others)

    @property
    def suppressors(self) -> tuple[InsertionFact, ...]:
        """The features whose insertion makes the fault disappear, the strongest first."""
        return tuple(fact for fact in self.insertions if fact.role == SUPPRESSOR)

    @property
    def paragraph(self) -> str:
        """The explanation in a few words."""
        from swarmtest.why.paragraph import paragraph_of

        return paragraph_of(self)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON data."""
        return {"format": FORMAT, **asdict(self), "paragraph": self.paragraph}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Explanation:
        """Return the explanation that `to_json` wrote."""
        if data.get("format") != FORMAT:
            raise ValueError("not an explanation")
        kinds: dict[str, Any] = {
            "steps": StepFact,
            "order": OrderFact,
            "values": ValueFact,
            "relations": RelationFact,
            "insertions": InsertionFact,
            "settings": SettingFact,
            "fresh": FreshFact,
        }
        fields = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        for key, kind in kinds.items():
            fields[key] = tuple(_checked(kind(**_with_tuples(i))) for i in fields.get(key, ()))
        if fields.get("confirmation") is not None:
            fields["confirmation"] = _checked(Confirmation(**_with_tuples(fields["confirmation"])))
        if fields.get("others") is not None:
            fields["others"] = _checked(OtherTests(**_with_tuples(fields["others"])))
        fields["same_as"] = ()  # which other faults there are is known when they are read
        fields["notes"] = tuple(map(str, fields.get("notes", ())))
        found = _checked(cls(**fields))
        steps = [at for fact in found.order for at in (fact.before, fact.after)]
        steps += [fact.step for fact in found.values]
        steps += [gap for fact in found.insertions for gap in fact.gaps]
        if not all(0 <= at < max(len(found.steps), 1) for at in steps):
            raise ValueError("a step that the test does not have")
        return found


def same_rule(first: Explanation, second: Explanation) -> bool:
    """Return whether two faults need the same: then they are probably one bug.

    The steps have to be the same or able to stand in for each other, in the same order, and the
    same relations have to hold. One step alone says too little.

    >>> push, pop, top = (StepFact(name, f"{name}()") for name in ("push", "pop", "top"))
    >>> popped = Explanation("4ee18053", (push, replace(pop, alike=("top",))))
    >>> same_rule(popped, Explanation("81bd2f1c", (push, top)))
    True
    >>> same_rule(Explanation("4ee18053", (push, pop)), Explanation("81bd2f1c", (push, top)))
    False
    """
    if len(first.steps) != len(second.steps) or len(first.steps) < 2:
        return False
    if (first.is_schedule, first.is_derivation) != (second.is_schedule, second.is_derivation):
        return False
    pairs = list(zip(first.steps, second.steps, strict=True))
    if not all(a.feature in b.choices or b.feature in a.choices for a, b in pairs):
        return False
    orders = [{(fact.before, fact.after) for fact in e.order} for e in (first, second)]
    differing = {a.feature for a, b in pairs if a.feature != b.feature}
    differing |= {b.feature for a, b in pairs if a.feature != b.feature}
    texts = [
        {fact.text for fact in e.relations if not any(name in fact.text for name in differing)}
        for e in (first, second)
    ]
    return orders[0] == orders[1] and texts[0] == texts[1]


def with_same_rules(explanations: Mapping[str, Explanation]) -> dict[str, Explanation]:
    """Return explanations with the ids of the other faults that have the same rule."""
    return {
        id: replace(
            found,
            same_as=tuple(
                other for other, e in explanations.items() if other != id and same_rule(found, e)
            ),
        )
        for id, found in explanations.items()
    }


def share_interval(part: int, whole: int) -> tuple[float, float]:
    """Return Wilson's 95% interval for a share; (0, 1) without runs.

    `swarmtest.analysis` has it for arrays, with numpy, which a short run does not load.

    >>> low, high = share_interval(4, 4)
    >>> round(low, 3), high
    (0.51, 1.0)
    """
    if not whole:
        return 0.0, 1.0
    z2 = _NORMAL_95**2
    middle = (part + z2 / 2) / (whole + z2)
    half = math.sqrt(z2 * (part * (whole - part) / whole + z2 / 4)) / (whole + z2)
    low = max(middle - half, 0.0) if part else 0.0
    return low, min(middle + half, 1.0) if part < whole else 1.0


def short_name(features: Sequence[str], step: int) -> str:
    """Return a step's feature for a relation, with its number if there are several.

    >>> short_name(["add", "add", "chop"], 1), short_name(["add", "add", "chop"], 2)
    ('add#2', 'chop')
    """
    same = [i for i, feature in enumerate(features) if feature == features[step]]
    number = f"#{same.index(step) + 1}" if len(same) > 1 else ""
    return features[step] + number


def record_of(
    explanation: Explanation, test: Any, trial: int, before: int, size: int
) -> ReductionRecord:
    """Return the record that keeps an explanation beside the reduction of its fault."""
    return ReductionRecord(
        explanation.fault,
        trial,
        before,
        size,
        json.dumps(test),
        details=json.dumps(explanation.to_json()),
        runs=explanation.runs,
        seconds=explanation.cpu_seconds,
        complete=explanation.is_complete,
        criterion=EXPLAINED,
        code="\n".join(_texts(explanation)),
    )


def _texts(explanation: Explanation) -> list[str]:
    """Return what commands show that do not know explanations."""
    if explanation.confirmation is None:
        return [explanation.paragraph]
    from swarmtest.why.views import confirmation_line

    return [explanation.paragraph, confirmation_line(explanation)]


def explanations_of(store: Store, campaign: int) -> dict[str, Explanation]:
    """Return the stored explanations of a campaign's faults, by fault.

    >>> from swarmtest import open_store
    >>> with open_store(":memory:") as store:
    ...     from swarmtest.store.records import CampaignRecord
    ...     explanations_of(store, store.add_campaign(CampaignRecord("s", "coin", 0, {})))
    {}
    """
    found = {}
    for record in store.reductions(campaign):
        if record.criterion == EXPLAINED:
            try:
                found[record.fault] = Explanation.from_json(json.loads(record.details))
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # of another version, or damaged: explaining again replaces it
    return with_same_rules(found)


def stored_explanation(store: Store, fault: str) -> Explanation | None:
    """Return the explanation of a fault from the newest campaign that has one; None if none has."""
    for campaign in reversed(store.campaigns()):
        found = explanations_of(store, campaign.id).get(fault)
        if found is not None:
            return found
    return None


_PLAIN_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "tuple[str, ...]": (tuple,),
    "tuple[int, ...]": (tuple,),
}


def _checked(value: Checked) -> Checked:
    """Return a value whose plain fields have their types; a store may hold anything."""
    for name, slot in value.__dataclass_fields__.items():
        content: Any = getattr(value, name)
        kind = str(slot.type)
        parts = content if kind.startswith("tuple[") and isinstance(content, tuple) else ()
        item = {"tuple[str, ...]": str, "tuple[int, ...]": int}.get(kind, object)
        plain = _PLAIN_TYPES.get(kind, (object,))
        if not (isinstance(content, plain) and all(isinstance(part, item) for part in parts)):
            raise ValueError(f"{name} is {content!r}")
    return value


def _with_tuples(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in item.items()}
