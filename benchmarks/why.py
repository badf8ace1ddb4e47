"""Real bugs explained from one failing test: does the explanation name what the fix touched?

    python benchmarks/why.py [--quick] [--only WORD] [--work DIR] [--focus [--seed N]]

For each bug, a machine that compares an old release of a library with a plain model runs until its
campaign ends. The *first* failing test of the bug is reduced and explained by experiments
(`swarmtest why`). What the explanation names as needed, with what can stand in for it, is set
against the truth in `why_truth.py`, which was written from changelogs and fixes. A fault is
explained if every group of the truth is named. Precision is the share of the named features that
the truth has, recall the share of the truth's features that are named. Beside that: what the
statistics of the whole campaign say (`swarmtest roles`), and whether a relation between arguments
that the truth has was found. `recall_with_alike` and `precision_with_alike` also count the features
of which the paragraph says that they fail too, each in a check of its own.

Hypothesis's explain phase prints nothing for state machines. Where the reduced test has arguments,
it is given to Hypothesis as one `@given` function of these arguments, and its remarks ("or any
other generated value") are set against the values that the experiments found to be free.

For the rare bugs, a campaign then starts from the one hit and its explanation
(`swarmtest focus --fault`): `focus_hits` is the share of them, of both halves, that 1,000 tests
hit again. How `focus` aims was chosen with these results known, for the first hits of campaigns
with seed 0. `--focus --seed 1` measures it, and nothing else, on the first hits of other campaigns:
other tests, other reduced tests, other explanations of the same bugs.

The bugs for tuning were used while the experiments were written. The figures in the last line are
those of the bugs for judging; `tuning_` is before those of the others.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from harness import cpu_seconds, print_figures, print_table, progress
from known_bugs import DEFAULT_WORK, HERE, install, unpack_source
from why_judged import JUDGING
from why_truth import RARE, TUNING, KnownCause

CONFIDENCE = 0.95
FOCUSED_TESTS = 1_000


@dataclass(frozen=True)
class Finding:
    """What came out for one bug."""

    bug: KnownCause
    answer: dict[str, Any]  # what the process with the old release printed

    @property
    def named(self) -> frozenset[str]:
        return frozenset(self.answer.get("named", ()))

    @property
    def said(self) -> frozenset[str]:
        """What is named, with what the paragraph says "fails too" in a check of its own."""
        return self.named | frozenset(self.answer.get("alike", ()))

    @property
    def triggers(self) -> frozenset[str]:
        return frozenset(self.answer.get("triggers", ()))

    @property
    def relation(self) -> bool | None:
        if self.bug.relation is None:
            return None
        ends = [f".{name}" for name in self.bug.relation]
        sides = [text.split(" = ") for text in self.answer.get("relations", ()) if " = " in text]
        return any(
            sorted(ends) == sorted(f".{side.rpartition('.')[2]}" for side in pair) for pair in sides
        )


def is_explained(bug: KnownCause, named: frozenset[str]) -> bool:
    return bool(named) and all(named & features for features in bug.needs)


def precision(bug: KnownCause, named: frozenset[str]) -> float:
    judged = named - bug.setup
    return len(judged & bug.features) / len(judged) if judged else 0.0


def recall(bug: KnownCause, named: frozenset[str]) -> float:
    return len(named & bug.features) / len(bug.features)


def examine(bug: KnownCause, tests: int, work: Path, *more: str) -> Finding:
    """Find and explain a bug, in a process that has the old release."""
    progress(f"{bug.package} {bug.release}, {bug.title}: {tests:,} tests, then its first hit")
    get = unpack_source if bug.source else install
    paths = [get(bug.package, bug.release, work)]
    for package, release in bug.also:
        paths += [install(package, release, work)]
    path = os.pathsep.join(map(str, (*paths, HERE / "known_bugs", HERE, HERE.parent / "src")))
    done = subprocess.run(
        [sys.executable, __file__, "--explain", bug.title, "--tests", str(tests), *more],
        env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{bug.title}: the process failed")
    return Finding(bug, json.loads(done.stdout.strip().splitlines()[-1]))


def explain_here(bug: KnownCause, tests: int) -> dict[str, Any]:
    """Run a campaign, explain the first failing test of the bug, and return what was found."""
    from swarmtest import Campaign, open_store
    from swarmtest.core.configuration import Configuration
    from swarmtest.core.result import Fault
    from swarmtest.reduce import reduce_test
    from swarmtest.subjects.loading import SubjectReference
    from swarmtest.why import explain_test

    subject = SubjectReference(str(HERE / "known_bugs" / bug.machine)).load()
    with tempfile.TemporaryDirectory() as directory, open_store(f"{directory}/store.db") as store:
        campaign = Campaign(subject, "coin", tests, 0, workers=1, store=store).run().campaign
        faults = [fault for fault in store.faults(campaign) if bug.is_shown_by(fault.signature)]
        if not faults:
            return {"tests": tests, "hits": 0}
        record = min(faults, key=lambda fault: fault.first_trial)
        trial = store.trial(campaign, record.first_trial)
        configuration = Configuration.from_bytes(subject.space, trial.configuration)
        test = subject.test_of(configuration, trial.seed)
        triggers = _triggers(store, campaign, record.id)
    fault = Fault(record.kind, record.signature)
    small = reduce_test(subject, test, fault.id)
    begun = cpu_seconds()
    found = explain_test(subject, small.test, fault)
    spent = cpu_seconds() - begun
    focused = _focus_hits(bug, subject, record.first_trial, small, found) if bug.is_rare else None
    hits = sum(other.count for other in faults)
    return {
        "tests": tests,
        "hits": hits,
        "size": small.size,
        "named": sorted(found.named),
        "alike": sorted({name for step in found.steps for name in step.alike}),
        "triggers": sorted(triggers),
        "relations": [fact.text for fact in found.relations],
        "suppressors": [fact.feature for fact in found.suppressors],
        "paragraph": found.paragraph,
        "runs": found.runs,
        "cpu_s": spent,
        "confirmed": [found.confirmation.hits, found.confirmation.tests]
        if found.confirmation
        else [0, 0],
        "free": sorted(f"{f.step}.{f.label}" for f in found.values if f.kind == "any"),
        "values": len(found.values),
        "hypothesis_free": _hypothesis_free(subject, small.test, fault.id),
        "code": subject.code(small.test),
        "focus": focused,
    }


def focus_here(bug: KnownCause, tests: int, seed: int) -> dict[str, Any]:
    """Run a campaign until the bug is hit, explain the hit, and aim at the fault."""
    from swarmtest import Campaign, open_store
    from swarmtest.core.configuration import Configuration
    from swarmtest.core.result import Fault
    from swarmtest.reduce import reduce_test
    from swarmtest.subjects.loading import SubjectReference
    from swarmtest.why import explain_test

    subject = SubjectReference(str(HERE / "known_bugs" / bug.machine)).load()
    for budget in (tests // 16, tests // 4, tests, 4 * tests):
        with tempfile.TemporaryDirectory() as directory, open_store(f"{directory}/s.db") as store:
            campaign = Campaign(subject, "coin", budget, seed, workers=1, store=store).run()
            faults = store.faults(campaign.campaign)
            faults = [fault for fault in faults if bug.is_shown_by(fault.signature)]
            if not faults:
                continue
            record = min(faults, key=lambda fault: fault.first_trial)
            trial = store.trial(campaign.campaign, record.first_trial)
            configuration = Configuration.from_bytes(subject.space, trial.configuration)
            test = subject.test_of(configuration, trial.seed)
        fault = Fault(record.kind, record.signature)
        small = reduce_test(subject, test, fault.id)
        found = explain_test(subject, small.test, fault)
        hits = _focus_hits(bug, subject, record.first_trial, small, found, seed)
        return {"tests": budget, "hits": 1, "first": record.first_trial, "focus": hits}
    return {"tests": 4 * tests, "hits": 0, "first": -1, "focus": None}


def _focus_hits(
    bug: KnownCause, subject: Any, first: int, small: Any, found: Any, seed: int = 0
) -> int:
    """Return how many of 1,000 tests that aim at the fault hit it, if it was hit once before."""
    from swarmtest import Budget, Campaign, open_store
    from swarmtest.focus import Focus, FocusRequest
    from swarmtest.why.explanation import record_of

    reference = str(HERE / "known_bugs" / bug.machine)
    with tempfile.TemporaryDirectory() as directory, open_store(f"{directory}/store.db") as store:
        first_tests = Campaign(reference, "coin", first + 1, seed, workers=1, store=store)
        campaign = first_tests.run().campaign
        # The store has an id of its own for the fault: it depends on the subject's name.
        id = next(f.id for f in store.faults(campaign) if bug.is_shown_by(f.signature))
        size = subject.size(small.test)
        record = record_of(replace(found, fault=id), small.test, first, size, size)
        store.add_reduction(campaign, record)
        request = FocusRequest(fault=(id,))
        budget = Budget(tests=FOCUSED_TESTS)
        outcome = Focus(reference, request, store, budget, workers=1, control=0.0).run()
        faults = store.faults(outcome.campaign)
    return sum(fault.count for fault in faults if bug.is_shown_by(fault.signature))


def _triggers(store: Any, campaign: int, fault: str) -> set[str]:
    from swarmtest.analysis.role_cells import TRIGGER
    from swarmtest.roles.study import Study

    study = Study(store, [campaign], CONFIDENCE)
    roles = study.roles(study.find(f"fault:{fault}"))
    return {r.feature for r in roles if r.role == TRIGGER and r.is_discovery(1 - CONFIDENCE)}


def _hypothesis_free(subject: Any, test: Any, fault: str) -> list[str] | None:
    """Return the arguments that Hypothesis finds to be free; None if it does not find the fault."""
    import io
    import re
    from contextlib import redirect_stderr, redirect_stdout

    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    from swarmtest.why.editing import editor_of

    editor = editor_of(subject, test)
    slots = [slot for slot in editor.slots(editor.steps) if not slot.path]
    strategies = {}
    for slot in slots:
        source = subject.actions[editor.steps[slot.step].action].arguments[slot.name]
        if source.bounds is not None and isinstance(editor.value(editor.steps, slot), int):
            strategy = st.integers(int(source.bounds[0]), int(source.bounds[1]))
        else:
            numbers = st.integers(0, 2**64)
            strategy = numbers.map(functools.partial(_drawn, source.draw))
        strategies[f"s{slot.step}_{slot.name}"] = strategy
    if not strategies:
        return None

    @seed(0)
    @settings(
        max_examples=2000,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink, Phase.explain],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(**strategies)
    def run(**values: Any) -> None:
        chosen = {slot: values[f"s{slot.step}_{slot.name}"] for slot in slots}
        steps = editor.with_values(editor.steps, chosen)
        shown = subject.replay(editor.test(steps)).fault if steps is not None else None
        assert shown is None or shown.id != fault

    printed = io.StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            run()
    except AssertionError as error:
        notes = "\n".join(getattr(error, "__notes__", ()))
        lines = [line for line in notes.splitlines() if "or any other generated value" in line]
        names = [re.match(r"\s*s(\d+)_(\w+)=", line) for line in lines]
        return sorted(f"{match[1]}.{match[2]}" for match in names if match)
    return None


def _drawn(draw: Callable[[random.Random], Any], number: int) -> Any:
    return draw(random.Random(number))


def row(finding: Finding) -> list[object]:
    bug, answer = finding.bug, finding.answer
    if not answer["hits"]:
        return [f"{bug.package} {bug.release} {bug.title}", "not found", *[""] * (len(HEAD) - 2)]
    relation = {None: "-", True: "yes", False: "no"}[finding.relation]
    return [
        f"{bug.package} {bug.release} {bug.title}",
        f"1 in {answer['tests'] / answer['hits']:,.0f}",
        answer["size"],
        "yes" if is_explained(bug, finding.named) else "no",
        f"{precision(bug, finding.named):.0%}",
        f"{recall(bug, finding.named):.0%}",
        relation,
        f"{answer['runs']:,}",
        f"{answer['cpu_s']:.2f}",
        f"{answer['confirmed'][0]}/{answer['confirmed'][1]}",
        "yes" if is_explained(bug, finding.triggers) else "no",
        f"{len(answer['free'])}/{answer['values']}",
        "-" if answer["hypothesis_free"] is None else len(answer["hypothesis_free"]),
        "-" if answer["focus"] is None else answer["focus"],
    ]


HEAD = [
    *("bug", "rate", "steps", "explained", "precision", "recall", "relation", "runs", "CPU s"),
    *("confirmed", "statistics", "free values", "Hypothesis", "hits by focus"),
]


def summary(findings: list[Finding]) -> dict[str, object]:
    found = [finding for finding in findings if finding.answer["hits"]]
    related = [finding.relation for finding in found if finding.relation is not None]
    return {
        "bugs": len(findings),
        "found": len(found),
        "explained": round(mean(is_explained(f.bug, f.named) for f in found), 3),
        "precision": round(mean(precision(f.bug, f.named) for f in found), 3),
        "recall": round(mean(recall(f.bug, f.named) for f in found), 3),
        "precision_with_alike": round(mean(precision(f.bug, f.said) for f in found), 3),
        "recall_with_alike": round(mean(recall(f.bug, f.said) for f in found), 3),
        "relations": round(mean(related), 3) if related else 0.0,
        "cpu_s_per_fault": round(mean(f.answer["cpu_s"] for f in found), 2),
        "confirmed": round(mean(f.answer["confirmed"][0] >= 4 for f in found), 3),
        "explained_by_statistics": round(mean(is_explained(f.bug, f.triggers) for f in found), 3),
        "recall_of_statistics": round(mean(recall(f.bug, f.triggers) for f in found), 3),
        "free_values": sum(len(f.answer["free"]) for f in found),
        "free_values_hypothesis": sum(len(f.answer["hypothesis_free"] or ()) for f in found),
    }


def focus_hits(findings: list[Finding]) -> float:
    """Return the share of the rare bugs that 1,000 focused tests hit again."""
    counts = [f.answer["focus"] for f in findings if f.answer.get("focus") is not None]
    return round(mean(count > 0 for count in counts), 3) if counts else 0.0


def focused(bug: KnownCause, work: Path, seed: int) -> Finding:
    """Find a bug, explain its first hit and aim at it, in a process that has the old release."""
    finding = examine(bug, bug.tests, work, "--focus", "--seed", str(seed))
    progress(
        f"first hit by test {finding.answer['first']}, hits by focus: {finding.answer['focus']}"
    )
    return finding


def print_focus(findings: list[Finding], seed: int) -> None:
    """Print what focused tests hit, for the first hits of the campaigns with a seed."""
    print(f"\n{FOCUSED_TESTS:,} tests that aim at a fault with a single hit (seed {seed})")
    rows = []
    for finding in findings:
        bug, answer = finding.bug, finding.answer
        hit = f"test {answer['first']:,}" if answer["hits"] else "not found"
        times = "-" if answer["focus"] is None else answer["focus"]
        rows.append([f"{bug.package} {bug.release} {bug.title}", hit, times])
    print_table(["bug", "first hit", "hits by focus"], rows)
    print_figures(
        {
            "seed": seed,
            "bugs": len(findings),
            "found": sum(bool(f.answer["hits"]) for f in findings),
            "focus_hits": focus_hits(findings),
            "cpu_seconds": round(cpu_seconds()),
        }
    )


def show(finding: Finding) -> None:
    bug, answer = finding.bug, finding.answer
    print(f"\n{bug.package} {bug.release}, {bug.title}")
    print(f'  {bug.fixed}: "{bug.quote}"')
    print("  truth:      " + "; ".join(" or ".join(sorted(names)) for names in bug.needs))
    if answer["hits"]:
        print(f"  explained:  {answer['paragraph']}")
        print(f"  triggers by statistics: {', '.join(answer['triggers']) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few bugs, fewer tests")
    parser.add_argument("--only", help="only the bugs with this in their package or title")
    parser.add_argument("--tuning", action="store_true", help="only the bugs for tuning")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="the working directory")
    parser.add_argument("--focus", action="store_true", help="only `focus_hits`")
    parser.add_argument("--seed", type=int, default=0, help="of the campaigns, with --focus")
    parser.add_argument("--explain", help=argparse.SUPPRESS)
    parser.add_argument("--tests", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.explain:
        bug = next(bug for bug in (*TUNING, *RARE, *JUDGING) if bug.title == options.explain)
        answer = (
            focus_here(bug, options.tests, options.seed)
            if options.focus
            else explain_here(bug, options.tests)
        )
        print(json.dumps(answer))
        return
    bugs = [bug for bug in (*TUNING, *RARE, *JUDGING) if bug.quick_tests or not options.quick]
    bugs = [bug for bug in bugs if not (options.tuning and bug.judged)]
    if options.only:
        bugs = [bug for bug in bugs if options.only in f"{bug.package} {bug.title}"]
    work = options.work.expanduser().resolve()
    if options.focus:
        bugs = [bug for bug in bugs if bug.is_rare]
        print_focus([focused(bug, work, options.seed) for bug in bugs], options.seed)
        return
    findings = [examine(bug, bug.quick_tests if options.quick else bug.tests, work) for bug in bugs]
    judged = [finding for finding in findings if finding.bug.judged]
    tuned = [finding for finding in findings if not finding.bug.judged]
    for title, group in (("for tuning", tuned), ("for judging", judged)):
        if group:
            print(f"\nbugs {title}")
            print_table(HEAD, [row(finding) for finding in group])
    for finding in findings:
        show(finding)
    if not judged:
        return
    last = summary(judged)
    last["focus_hits"] = focus_hits(findings)
    if tuned:
        last |= {f"tuning_{key}": value for key, value in summary(tuned).items()}
    print_figures(last)


if __name__ == "__main__":
    main()
