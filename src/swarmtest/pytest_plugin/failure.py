"""What a person wants to know when a machine fails: its faults, each by a test made small."""

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
from swarmtest.campaign.reduced_faults import FaultReductions, ReductionTime
from swarmtest.core.result import Fault, Verdict
from swarmtest.pytest_plugin.forking import forking, silence
from swarmtest.pytest_plugin.options import Plan, settings_of
from swarmtest.reduce.fault_reductions import reduce_faults
from swarmtest.roles.views import study_or_none, why_in_short
from swarmtest.store.interface import Store, is_postgres
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.subjects.subject import Subject
from swarmtest.ui.terminal.reduced_tests import as_shown, reduction_line, replay_words, with_reasons
from swarmtest.ui.terminal.tables import command_text, fault_configurations, fault_lines, plural
from swarmtest.ui.terminal.text import kind_and_signature, one_line

_IN_FULL = 3
"""Faults that are reduced and shown with their tests; the others get a line each."""
_REDUCING = ReductionTime(total=_IN_FULL * 20.0, each=20.0)
"""For making their tests small."""
_HANGING = 2.0
"""Seconds after which a test that takes ten times as long as others is worth a word."""
_EXCEPTIONS = ("exception", "invariant")
"""Faults that leave their process alive."""
_LINES = 24
"""Lines of a traceback that are shown."""
_OWN = tuple(f'  File "{place}' for place in (Path(swarmtest.__file__).parent, "<swarmtest"))


class Failure:
    """The words for an outcome; `text` is empty if there is nothing to complain about."""

    def __init__(
        self, config: pytest.Config, nodeid: str, plan: Plan, subject: Subject, outcome: Outcome
    ) -> None:
        self._config = config
        self._nodeid = nodeid
        self._plan = plan
        self._subject = subject
        self._outcome = outcome
        self.text = ""
        self.remarks: list[str] = []
        """What came of a focus; said with the faults."""
        self.notes: list[str] = []
        """What a user should know also when nothing failed."""
        self._untried: tuple[str, ...] = ()
        self.raising: list[Any] = []
        """The tests that `text` shows and that end in an exception, as JSON data."""

    def tell(self, store: Store) -> None:
        """Find the words."""
        progress = self._outcome.progress
        self.notes = [*self._unused(), *self._given_up(store), *self._outcome.notes]
        if self._outcome.faults:
            self.text = self._faults(store)
        elif progress.invalid == progress.tests:
            self.text = self._nothing_tested(store)

    def _nothing_tested(self, store: Store) -> str:
        tests = self._outcome.progress.tests
        if not tests:
            return f"no test came to its end within {self._plan.budget.describe()}"
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
        """A test that hangs is a fault after its own time; here all time was up before that."""
        progress = self._outcome.progress
        if not progress.tests or progress.reached(self._plan.budget) != "time is up":
            return []
        tested = store.summary(self._outcome.campaign)["wall_ns"] / 1e9
        left = progress.wall_seconds * max(self._plan.workers, 1) - tested
        if left < max(_HANGING, 10 * tested / progress.tests):
            return []
        return [
            f"when time was up, a test had been running for {left:.0f} s: it was given up, and "
            "may be one that hangs; give it more time"
        ]

    def _faults(self, store: Store) -> str:
        campaign, faults = self._outcome.campaign, self._outcome.faults
        record = store.campaign(campaign)
        found = self._reduced(store)
        why = with_reasons(why_in_short(study_or_none(store, campaign)), found)
        configurations = fault_configurations(store, campaign, faults)
        tests = plural(self._outcome.progress.tests, "test")
        more = "; ..." if len(faults) > 1 else ""
        lines = [
            f"{plural(len(faults), 'fault')} in {tests}: {one_line(faults[0].signature)}{more}",
            f"seed {record.seed}, strategy {record.strategy}",
        ]
        for fault in faults[:_IN_FULL]:
            small = found.reductions.get(fault.id)
            told = why.get(fault.id, ())
            lines += ["", *self._in_full(fault, small, configurations[fault.id], told)]
            lines.append(f"  replay: {self._replay(fault, small, store)}")
        for fault in faults[_IN_FULL:]:
            lines += ["", f"fault {fault.id}  {kind_and_signature(fault.kind, fault.signature)}"]
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
        """A fault with its test made small, and where that ended."""
        how = reduction_line(fault, small, self._outcome.campaign, self._subject.part)
        if fault.test is None:
            how = "not reduced: its process died before the test was told"
        elif not how and fault.id in self._untried:
            how = "not reduced: the time was up"
        shown = as_shown(fault, small)
        if small is not None and small.test is not None:
            test = json.loads(small.test)
            if fault.kind in _EXCEPTIONS:
                self.raising.append(test)
            why = [*why, *self._handed_over(test, Fault(fault.kind, fault.signature))]
        details = _of_the_program(shown.details)
        shown = shown._replace(details="")  # its last line would be shown twice
        lines = fault_lines(shown, self._subject, configuration, "", why, how)
        return [*lines, *(f"    {line}".rstrip() for line in details), ""]

    def _handed_over(self, test: Any, fault: Fault) -> list[str]:
        """A test of Hypothesis's own machines goes to its examples, too."""
        hand_over = getattr(self._subject, "hand_over", None)
        if hand_over is None:
            return []
        with forking(), silence():
            handed = hand_over(test, fault)
        if handed.saved:
            return ["kept as an example of Hypothesis: its next run begins with it"]
        return [f"not kept as an example of Hypothesis: {handed.why}"]

    def _reduced(self, store: Store) -> FaultReductions:
        """The faults that are shown in full, with their tests made small."""
        wanted = [fault.id for fault in self._outcome.faults[:_IN_FULL]]
        with forking():
            found = reduce_faults(
                self._subject, store, self._outcome.campaign, _REDUCING, faults=wanted
            )
        if found.interrupted:
            raise KeyboardInterrupt
        self._untried = found.untried
        return found

    def _replay(self, fault: FaultRecord, small: ReductionRecord | None, store: Store) -> str:
        """What to type to run the test that is shown again."""
        if store.url == ":memory:":
            return "not kept: name a file with --swarm-store"
        root, here = self._config.rootpath, self._config.invocation_params.dir
        inside = store.url if is_postgres(store.url) else os.path.relpath(store.url, root)
        place = store.url if inside.startswith(os.pardir) else inside
        command = command_text(replay_words(self._outcome.campaign, fault, small), place)
        command = f"{self._python_path()}{command}"
        return command if here == root else f"cd {shlex.quote(_from(root, here))} && {command}"

    def _python_path(self) -> str:
        """What only pytest's ini file makes importable, for a shell."""
        root = self._config.rootpath
        paths = [_from(root / path, root) for path in self._config.getini("pythonpath")]
        return f"PYTHONPATH={shlex.quote(os.pathsep.join(paths))} " if paths else ""

    def _rerun(self) -> str:
        """What to type for the same tests of this machine, and no other."""
        file, _, name = self._nodeid.partition("::")
        place = _from(self._config.rootpath / file, self._config.invocation_params.dir)
        return shlex.join(
            ["pytest", f"{place}::{name}", *settings_of(self._config).as_typed(self._plan)]
        )


def _from(path: Path, here: Path) -> str:
    return os.path.relpath(path, here)


def _of_the_program(details: str) -> list[str]:
    """A traceback, or a dump of the stack, without the frames of whoever called the program."""
    lines = details.rstrip().splitlines()
    if "(most recent call first):" in details:
        own = [n for n, line in enumerate(lines) if line.startswith(_OWN)]
        lines = lines[: own[0]] if own else lines
    kept: list[str] = []
    dropping = False
    for line in lines:
        if line.startswith('  File "') or not line.startswith("   "):
            dropping = line.startswith(_OWN)
        if not dropping:
            kept.append(line)
    return kept if len(kept) <= _LINES else ["...", *kept[-_LINES:]]
