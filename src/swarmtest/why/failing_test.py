"""Explain one failing test, by experiments in their order.

Each kind of experiment has its share of the runs; what it leaves over goes to the next ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from swarmtest.core.result import Fault
from swarmtest.core.signatures import is_older_form
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.perturbation import perturbed_memory
from swarmtest.subjects.machine.values import Ref
from swarmtest.subjects.subject import Subject
from swarmtest.why.confirmation import (
    confirm,
    confirm_generator,
    confirm_reusing,
    find_fresh_roles,
)
from swarmtest.why.editing import Slot, editor_of
from swarmtest.why.experiments import (
    MOST_ORDERED,
    Replacement,
    Study,
    drop_unneeded_steps,
    find_alternatives,
    find_insertions,
    find_order,
    find_settings,
    find_values,
)
from swarmtest.why.explanation import (
    IRRELEVANT,
    Confirmation,
    Explanation,
    StepFact,
)
from swarmtest.why.other_tests import (
    compare_other_tests,
)
from swarmtest.why.relations import find_relations
from swarmtest.why.schedules import explain_schedule, schedule_of
from swarmtest.why.variant_runs import VariantBudget, VariantOutcome, VariantRuns

Fact = TypeVar("Fact")
_SHARES = {"order": 0.12, "values": 0.2, "alternatives": 0.25, "insertions": 0.3}
"""The share of the runs that each kind of experiment may take; what is left over goes on."""
_WALK = 400
"""Runs of the walk over values, with the fresh walk that judges its rule."""
_ALIKE = 60
"""Fresh variants that change only what was found not to matter."""
_REUSING = VariantBudget(runs=400, cpu_seconds=2.0)
"""The budget of tests that are generated to confirm an explanation."""
_SIMPLE = (int, float, str, bytes, bool, type(None), Ref)


def explain_test(
    subject: Subject,
    test: Any,
    fault: Fault,
    *,
    budget: VariantBudget | None = None,
    seed: int = 0,
    seconds: float = 10.0,
    confirming: bool = True,
    others: Sequence[Any] = (),
) -> Explanation:
    """Explain why a test shows a fault, by experiments on the test.

    `budget` limits runs and CPU time, and `seconds` one run. With `confirming`, tests are then
    generated from the explanation, to see how often these show the fault. `others` are other
    reduced tests that show it: the explanation says how many of them follow the same rule. Raise
    `UserError` if the test does not show the fault, or if tests of this kind cannot be edited.

    >>> from swarmtest import Machine, action, integers
    >>> from swarmtest.subjects import MachineSubject
    >>> class Door(Machine):
    ...     def start(self): self.code = None
    ...     @action(code=integers(0, 50))
    ...     def lock(self, code): self.code = code
    ...     @action
    ...     def reset(self): self.code = None
    ...     @action(code=integers(0, 50))
    ...     def unlock(self, code): assert code != self.code
    >>> from swarmtest.subjects.machine.test import MachineTest, Step
    >>> subject = MachineSubject(Door)
    >>> test = MachineTest("Door", (Step("lock", (7,)), Step("unlock", (7,)))).to_json()
    >>> explain_test(subject, test, subject.replay(test).fault).paragraph.partition("; seen")[0]
    'needs lock, then unlock; with lock.code = unlock.code; never with reset or lock after lock'
    """

    def shows() -> bool:
        shown = run_isolated(lambda: subject.replay(test), seconds, quiet=True).fault
        if shown is None or shown.kind != fault.kind:
            return False
        return shown == fault or is_older_form(fault.signature, shown.signature)

    with perturbed_memory(shows):
        return _explain_test(subject, test, fault, budget, seed, seconds, confirming, others)


def _explain_test(
    subject: Subject,
    test: Any,
    fault: Fault,
    budget: VariantBudget | None,
    seed: int,
    seconds: float,
    confirming: bool,
    others: Sequence[Any],
) -> Explanation:
    grammar = _grammar_of(subject, test)
    if grammar is not None:
        from swarmtest.why.derivations import explain_derivation

        with VariantRuns(subject, fault, budget, seconds) as runs:
            return explain_derivation(grammar, test, fault, runs, seed)
    if schedule_of(test) is not None:
        with VariantRuns(subject, fault, budget, seconds) as runs:
            return explain_schedule(test, fault, runs, seed)
    editor = editor_of(subject, test)
    with VariantRuns(subject, fault, budget, seconds) as runs:
        study = Study(editor, runs, seed)
        runs.check(test, editor.test(()))
        return _Explaining(study, fault, others).explanation(subject, seconds, confirming)


def _grammar_of(subject: Subject, test: Any) -> Any:
    """Return the grammar of a test; import what reads grammars only if the test has a tree."""
    if not isinstance(test, dict) or "tree" not in test:
        return None
    from swarmtest.why.derivations import grammar_of

    return grammar_of(subject, test)


@dataclass
class _Explaining:
    """The experiments on one test, in their order."""

    study: Study
    fault: Fault
    others: Sequence[Any]

    def explanation(self, subject: Subject, seconds: float, confirming: bool) -> Explanation:
        study, runs = self.study, self.study.runs
        with runs.limited(self._runs_for("order")):
            drop_unneeded_steps(study)
        order = self._within("order", find_order(study))
        is_ordered = not runs.was_cut_short
        values = self._within("values", find_values(study))
        are_values_known = not runs.was_cut_short
        settings = self._within("values", find_settings(study))
        replaced = self._within("alternatives", find_alternatives(study))
        free = {(fact.step, fact.label) for fact in values if fact.kind == "any"}
        slots = self._bound_slots(free)
        bases = [study.steps]
        left = runs.budget.runs - runs.runs - self._runs_for("insertions") - _ALIKE
        relations, rule = find_relations(study, slots, max(min(_WALK, left), 0), bases)
        insertions = find_insertions(study, bases, self._runs_for("insertions"))
        found = Explanation(
            self.fault.id,
            self._step_facts(replaced),
            tuple(order),
            tuple(values),
            tuple(relations),
            tuple(insertions),
            tuple(settings),
            seed=study.seed,
            is_ordered=is_ordered and len(study.steps) <= MOST_ORDERED,
            are_values_known=are_values_known,
        )
        kept, variants = self._alike(found, free)
        for relation in relations[:1]:  # all have the same counts, those of the rule
            kept, variants = kept + relation.shown, variants + relation.fitting
        found = replace(
            found,
            kept=kept,
            variants=variants,
            runs=runs.runs,
            is_complete=not runs.is_spent,
            notes=self._notes(),
        )
        if self.others:
            compared = compare_other_tests(found, rule, subject, self.others)
            found = replace(found, others=compared)
        cpu_seconds = 0.0
        if confirming:
            found, cpu_seconds = self._confirmed(subject, found, seconds)
        return replace(found, cpu_seconds=runs.cpu_seconds + cpu_seconds)

    def _confirmed(
        self, subject: Subject, found: Explanation, seconds: float
    ) -> tuple[Explanation, float]:
        """Generate tests from the explanation; return it with what they show, and CPU seconds."""
        features = _features_of_generator(self.study.editor.test(self.study.steps))
        confirmation: Confirmation | None
        if features is not None:
            seed = self.study.seed
            confirmation, spent = confirm_generator(
                subject, features, self.fault, seed, seconds=seconds
            )
        else:
            confirmation, spent = self._confirmed_by_steps(subject, found, seconds)
        found = replace(found, confirmation=confirmation)
        fresh, cpu_seconds = find_fresh_roles(
            subject, found, self.fault, leaving_out=features is not None, seconds=seconds
        )
        return replace(found, fresh=tuple(fresh)), spent + cpu_seconds

    def _confirmed_by_steps(
        self, subject: Subject, found: Explanation, seconds: float
    ) -> tuple[Confirmation | None, float]:
        confirmation, cpu_seconds = confirm(subject, found, self.fault, seconds=seconds)
        if confirmation is None or not confirmation.is_enough:
            alone = self.study.runs.is_alone
            with VariantRuns(subject, self.fault, _REUSING, seconds, alone=alone) as more:
                again = confirm_reusing(replace(self.study, runs=more), found)
                cpu_seconds += more.cpu_seconds
            if again is not None and (confirmation is None or again.low > confirmation.low):
                confirmation = again
        return confirmation, cpu_seconds

    def _runs_for(self, kind: str) -> int:
        return int(self.study.runs.budget.runs * _SHARES[kind])

    def _within(self, kind: str, facts: Iterator[Fact]) -> list[Fact]:
        """Make experiments with their share of the runs; return the facts up to then."""
        found: list[Fact] = []
        with self.study.runs.limited(self._runs_for(kind)):
            for fact in facts:
                found.append(fact)  # noqa: PERF402  # what was found stays when the runs end
        return found

    def _step_facts(self, replaced: list[Replacement]) -> tuple[StepFact, ...]:
        study, features = self.study, self.study.features
        others: dict[int, tuple[str, ...]] = {}
        for at in {found.step for found in replaced}:
            others[at] = _named(found for found in replaced if found.step == at)
        for at, feature in enumerate(features):
            # The first and the last step of a feature were tried; between them, both must agree.
            tried = [others[i] for i, f in enumerate(features) if f == feature and i in others]
            if at not in others and len(tried) > 1:
                others[at] = tuple(other for other in tried[0] if other in tried[-1])
        return tuple(
            StepFact(
                feature,
                study.editor.line(study.steps, at),
                others.get(at, ()),
                max((found.runs for found in replaced if found.step == at), default=0),
                not study.editor.is_fixed(study.steps[at]),
                tuple(found.feature for found in replaced if found.step == at and found.is_alike),
            )
            for at, feature in enumerate(features)
        )

    def _bound_slots(self, free: set[tuple[int, str]]) -> list[Slot]:
        """Return the slots whose values matter and can be compared."""
        study = self.study
        return [
            slot
            for slot in study.editor.slots(study.steps)
            if (slot.step, slot.label) not in free
            and (slot.step, slot.name) not in free
            and isinstance(study.editor.value(study.steps, slot), _SIMPLE)
        ]

    def _alike(self, found: Explanation, free: set[tuple[int, str]]) -> tuple[int, int]:
        """Run fresh variants that change only what was found not to matter; count the fault."""
        study = self.study
        editor, rng = study.editor, study.rng("alike")
        slots = [s for s in editor.slots(study.steps) if (s.step, s.label) in free]
        pools = {slot: editor.candidates(study.steps, slot, rng) for slot in slots}
        harmless = [fact.feature for fact in found.insertions if fact.role == IRRELEVANT]
        before = {(fact.before, fact.after) for fact in found.order}
        shown: dict[str, bool] = {}
        with study.runs.limited(_ALIKE):
            for _ in range(4 * _ALIKE):
                chosen = {s: rng.choice(pools[s]) for s in slots if pools[s] and rng.random() < 0.7}
                steps = editor.with_values(study.steps, chosen)
                if steps is None:
                    continue
                if len(steps) <= 12:
                    steps = _reordered(steps, before, rng)
                if harmless and rng.random() < 0.7:
                    at = rng.randrange(len(steps))
                    step = editor.new_step(rng.choice(harmless), steps, at, rng)
                    if step is not None:
                        steps = (*steps[:at], step, *steps[at:])
                if not editor.is_possible(steps) or steps == study.steps:
                    continue
                outcome = study.outcome(steps)
                if outcome.is_kept or outcome is VariantOutcome.GONE:
                    shown[repr(steps)] = outcome.is_kept
        return sum(shown.values()), len(shown)

    def _notes(self) -> tuple[str, ...]:
        runs, notes = self.study.runs, []
        if runs.is_flaky:
            notes.append(
                f"the test shows its fault in {runs.shown} of {runs.checks} runs: a variant "
                "counts as failing if one of several runs fails"
            )
        elif runs.is_alone:
            notes.append("tests change the outcome of later ones, so each ran in its own process")
        if runs.is_spent:
            notes.append("the budget was spent before all experiments were made")
        if self.study.editor.unsupported:
            notes.append(self.study.editor.unsupported)
        return tuple(notes)


def _features_of_generator(test: Any) -> list[str] | None:
    """Return the features that were on when a command generated a test; None for other tests."""
    features = test.get("features") if isinstance(test, dict) else None
    return list(features) if isinstance(features, list) else None


def _named(replaced: Iterable[Replacement]) -> tuple[str, ...]:
    names = (found.feature for found in replaced if found.feature and not found.is_alike)
    return tuple(dict.fromkeys(names))


def _reordered(steps: tuple[Any, ...], before: set[tuple[int, int]], rng: Any) -> tuple[Any, ...]:
    """Return the steps in a random order that keeps the given pairs."""
    left = list(range(len(steps)))
    order = []
    while left:
        ready = [j for j in left if not any((i, j) in before for i in left)]
        chosen = rng.choice(ready)
        left.remove(chosen)
        order.append(chosen)
    return tuple(steps[at] for at in order)
