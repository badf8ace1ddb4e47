"""The report of a machine that fails: its faults, each with a reduced test."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import swarmtest
from swarmtest.campaign.campaign import Outcome
from swarmtest.campaign.failing_faults import RunLives
from swarmtest.campaign.reduced_faults import FaultReductions, ReductionTime
from swarmtest.core.formatting import plural
from swarmtest.core.result import Fault, Verdict
from swarmtest.pytest_plugin.item import forking, silence
from swarmtest.pytest_plugin.options import CampaignPlan, settings_of
from swarmtest.reduce.fault_reductions import reduce_faults
from swarmtest.roles.views import study_or_none, why_in_short
from swarmtest.store.interface import Store, is_postgres
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.subjects.subject import Subject
from swarmtest.ui.terminal.fault_lives import announce, life_lines
from swarmtest.ui.terminal.reduced_tests import as_shown, reduction_line, replay_words, with_reasons
from swarmtest.ui.terminal.tables import command_text, fault_configurations, fault_lines
from swarmtest.ui.terminal.text import kind_and_signature, one_line
from swarmtest.why.explanation import Explanation
from swarmtest.why.fault_explanations import IN_PASSING, explain_faults
from swarmtest.why.views import explanation_lines

_IN_FULL = 3
"""How many faults are reduced and shown with their tests; the others get a line each."""
_REDUCING = ReductionTime(total=_IN_FULL * 20.0, each=20.0)
_HANGING = 2.0
"""Seconds after which a test that takes ten times as long as others is mentioned."""
_EXCEPTIONS = ("exception", "invariant")
"""The kinds of faults that leave their process alive."""
_LINES = 24
"""How many lines of a traceback are shown."""
_OWN_FRAMES = tuple(f'  File "{path}' for path in (Path(swarmtest.__file__).parent, "<swarmtest"))


class FailureReport:
    """The report of an outcome; `text` is empty if nothing failed."""

    def __init__(
        self,
        config: pytest.Config,
        nodeid: str,
        plan: CampaignPlan,
        subject: Subject,
        outcome: Outcome,
        lives: RunLives,
    ) -> None:
        self._config = config
        self._nodeid = nodeid
        self._plan = plan
        self._subject = subject
        self._outcome = outcome
        self._lives = lives
        self.text = ""
        self.remarks: list[str] = []
        """The results of a focus, shown with the faults."""
        self.notes: list[str] = []
        """Messages for the user, also if nothing failed."""
        self.forgiven: list[str] = []
        """The faults, a line for each, if none of them counts (``--swarm-fail-on``)."""
        self._untried: tuple[str, ...] = ()
        self.raising: list[Any] = []
        """The tests in `text` that end in an exception, as JSON data."""

    def tell(self, store: Store) -> None:
        """Write the report."""
        progress = self._outcome.progress
        self.notes = [*self._unused(), *self._given_up(store), *self._outcome.notes]
        found = [fault.id for fault in self._outcome.faults]
        failing = self._lives.failing(settings_of(self._config).fail_on, found)
        if failing:
            self.text = self._faults(store)
        elif found:
            self.forgiven = [str(announce(f, self._lives.before)) for f in self._outcome.faults]
        elif progress.invalid == progress.tests:
            self.text = self._nothing_tested(store)
        elif not progress.steps and self._subject.part == "step":
            self.text = (
                f"no action ran in {plural(progress.tests, 'test')}, so nothing was tested: at the "
                "start, no guard was true (when=), or every pool was empty"
            )

    def _nothing_tested(self, store: Store) -> str:
        tests = self._outcome.progress.tests
        if not tests:
            return f"no test ended within {self._plan.budget.describe()}"
        invalid = store.trials(self._outcome.campaign, verdict=Verdict.INVALID)
        reason = Counter(trial.missing for trial in invalid).most_common(1)[0][0]
        return f"none of {plural(tests, 'test')} was valid: {reason}"

    def _unused(self) -> list[str]:
        if self._outcome.progress.failed == self._outcome.progress.tests:
            return []
        return [
            f"action {name!r} was allowed in {tests:,} tests and never ran: its guard was never "
            "true, or its pool always empty"
            for name, tests in self._outcome.unused.items()
        ]

    def _given_up(self, store: Store) -> list[str]:
        """Return a note if a test was probably hanging when the time was up.

        A test that hangs is a fault after its own time limit; here the campaign ended before that.
        """
        progress = self._outcome.progress
        if not progress.tests or progress.reached(self._plan.budget) != "time is up":
            return []
        tested = store.summary(self._outcome.campaign)["wall_ns"] / 1e9
        left = progress.wall_seconds * max(self._plan.workers, 1) - tested
        if left < max(_HANGING, 10 * tested / progress.tests):
            return []
        return [
            f"when time was up, a test had been running for {left:.0f} s: it was stopped, and may "
            "be one that hangs; give it more time"
        ]

    def _faults(self, store: Store) -> str:
        campaign, faults = self._outcome.campaign, self._outcome.faults
        record = store.campaign(campaign)
        reduced = self._reduced(store)
        why = with_reasons(why_in_short(study_or_none(store, campaign)), reduced)
        for fault_id, explanation in self._explained(store).items():
            why.setdefault(fault_id, []).extend(explanation_lines(explanation))
        configurations = fault_configurations(store, campaign, faults)
        tests = plural(self._outcome.progress.tests, "test")
        more = "; ..." if len(faults) > 1 else ""
        lines = [
            f"{plural(len(faults), 'fault')} in {tests}: {one_line(faults[0].signature)}{more}",
            f"seed {record.seed}, strategy {record.strategy}",
        ]
        for fault in faults[:_IN_FULL]:
            small = reduced.reductions.get(fault.id)
            reasons = why.get(fault.id, ())
            lines += ["", *self._in_full(fault, small, configurations[fault.id], reasons)]
            lines.append(f"  replay: {self._replay(fault, small, store)}")
        for fault in faults[_IN_FULL:]:
            lines += ["", f"fault {fault.id}  {kind_and_signature(fault.kind, fault.signature)}"]
            life = life_lines(self._lives.after.get(fault.id), self._lives.before)
            lines += [f"  {line}" for line in life]
            lines.append(f"  replay: {self._replay(fault, None, store)}")
        notes = [*self.remarks, *(f"note: {note}" for note in self.notes)]
        return "\n".join([*lines, "", *notes, f"rerun: {self._rerun()}"])

    def _in_full(
        self,
        fault: FaultRecord,
        small: ReductionRecord | None,
        configuration: str,
        why: Sequence[str],
    ) -> list[str]:
        """Return the lines of a fault with its reduced test and its traceback."""
        how = reduction_line(fault, small, self._outcome.campaign, self._subject.part)
        if fault.test is None:
            how = "not reduced: its process died before it could report the test"
        elif not how and fault.id in self._untried:
            how = "not reduced: the time was up"
        shown = as_shown(fault, small)
        if small is not None and small.test is not None:
            test = json.loads(small.test)
            if fault.kind in _EXCEPTIONS:
                self.raising.append(test)
            why = [*why, *self._handed_over(test, fault.fault)]
        details = _without_own_frames(shown.details)
        shown = shown._replace(details="")  # its last line would be shown twice
        life = life_lines(self._lives.after.get(fault.id), self._lives.before)
        lines = fault_lines(shown, self._subject, configuration, "", why, how, life)
        return [*lines, *(f"    {line}".rstrip() for line in details), ""]

    def _handed_over(self, test: Any, fault: Fault) -> list[str]:
        """Save a test of a Hypothesis state machine in Hypothesis's own database, too."""
        hand_over = getattr(self._subject, "hand_over", None)
        if hand_over is None:
            return []
        with forking(), silence():
            handed = hand_over(test, fault)
        if handed.saved:
            return ["saved as an example for Hypothesis, which runs it first next time"]
        return [f"not saved as an example for Hypothesis: {handed.why}"]

    def _reduced(self, store: Store) -> FaultReductions:
        """Reduce the tests of the faults that are shown in full."""
        shown = [fault.id for fault in self._outcome.faults[:_IN_FULL]]
        with forking():
            reductions = reduce_faults(
                self._subject, store, self._outcome.campaign, _REDUCING, faults=shown
            )
        if reductions.interrupted:
            raise KeyboardInterrupt
        self._untried = reductions.untried
        return reductions

    def _explained(self, store: Store) -> dict[str, Explanation]:
        """Explain the faults that are shown in full by experiments on their reduced tests."""
        if self._config.getoption("--swarm-no-why"):
            return {}
        shown = [fault.id for fault in self._outcome.faults[:_IN_FULL]]
        with forking(), silence():
            return explain_faults(
                self._subject, store, self._outcome.campaign, budget=IN_PASSING, faults=shown
            )

    def _replay(self, fault: FaultRecord, small: ReductionRecord | None, store: Store) -> str:
        """Return the command that runs the shown test again."""
        if store.url == ":memory:":
            return "not stored: name a file with --swarm-store"
        root, here = self._config.rootpath, self._config.invocation_params.dir
        inside = store.url if is_postgres(store.url) else os.path.relpath(store.url, root)
        path = store.url if inside.startswith(os.pardir) else inside
        command = command_text(replay_words(self._outcome.campaign, fault, small), path)
        command = f"{self._python_path()}{command}"
        return (
            command
            if here == root
            else f"cd {shlex.quote(os.path.relpath(root, here))} && {command}"
        )

    def _python_path(self) -> str:
        """Return the PYTHONPATH for a shell that pytest's ini file sets for pytest."""
        root = self._config.rootpath
        paths = [os.path.relpath(root / path, root) for path in self._config.getini("pythonpath")]
        return f"PYTHONPATH={shlex.quote(os.pathsep.join(paths))} " if paths else ""

    def _rerun(self) -> str:
        """Return the command that runs the same tests of this machine only."""
        file, _, name = self._nodeid.partition("::")
        path = os.path.relpath(self._config.rootpath / file, self._config.invocation_params.dir)
        return shlex.join(
            ["pytest", f"{path}::{name}", *settings_of(self._config).as_typed(self._plan)]
        )


def _without_own_frames(details: str) -> list[str]:
    """Return a traceback or a stack dump without the frames of swarmtest."""
    lines = details.rstrip().splitlines()
    if "(most recent call first):" in details:
        own = [n for n, line in enumerate(lines) if line.startswith(_OWN_FRAMES)]
        lines = lines[: own[0]] if own else lines
    shown: list[str] = []
    dropping = False
    for line in lines:
        if line.startswith('  File "') or not line.startswith("   "):
            dropping = line.startswith(_OWN_FRAMES)
        if not dropping:
            shown.append(line)
    return shown if len(shown) <= _LINES else ["...", *shown[-_LINES:]]
