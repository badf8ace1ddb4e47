"""The campaign of one test of pytest.

The campaign gets the subject as an object, not by its name, so its workers are forked from this
process. Afterwards, the name by which `swarmtest` can find the subject is added to the store.
"""

from __future__ import annotations

import contextlib
import linecache
import os
from pathlib import Path

import pytest

from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.campaign.failing_faults import RunLives
from swarmtest.core.errors import UserError
from swarmtest.pytest_plugin.failure import FailureReport
from swarmtest.pytest_plugin.item import forking
from swarmtest.pytest_plugin.options import CampaignPlan, settings_of
from swarmtest.store import open_store
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference, subject_of
from swarmtest.subjects.subject import Subject

_MADE_BY = "pytest"
"""The option of a stored campaign that names the test of pytest it belongs to."""


class CampaignRun:
    """One campaign and its results."""

    def __init__(
        self, config: pytest.Config, reference: str, nodeid: str, plan: CampaignPlan
    ) -> None:
        self._config = config
        self._reference = SubjectReference(reference)
        self._nodeid = nodeid
        self._plan = plan
        self.remarks: list[str] = []
        """The results of aiming at changes, with --swarm-focus."""

    def campaign(self, member: object, file: Path) -> Outcome:
        """Run the campaign; `member` is a machine or a subject, or None if `file` describes it."""
        self._subject = self._load(member, file)
        with open_store(settings_of(self._config).store) as store:
            before = fault_lives(store, self._subject.name)
            outcome = self._run(store)
            lives = RunLives.until_now(before, store, self._subject.name)
            self.failure = FailureReport(
                self._config, self._nodeid, self._plan, self._subject, outcome, lives
            )
            self.failure.remarks = self.remarks
            self.failure.tell(store)
        return outcome

    def _run(self, store: Store) -> Outcome:
        plan = self._plan
        revision = settings_of(self._config).focus
        if revision is not None:
            from swarmtest.pytest_plugin.focus import FocusedRun

            focused = FocusedRun(self._config, revision, plan, self._subject, self._reference)
            outcome, self.remarks = focused.run(store)
        else:
            outcome = self._undirected(store)
        self._update_store(store, outcome.campaign)
        if outcome.interrupted:
            raise KeyboardInterrupt
        return outcome

    def _undirected(self, store: Store) -> Outcome:
        plan = self._plan
        campaign = Campaign(
            self._subject, plan.strategy, plan.budget, plan.seed, plan.workers, store
        )
        with forking(plan.workers > 0):
            return campaign.run()

    def _load(self, member: object, file: Path) -> Subject:
        name = self._reference.text
        if member is None:
            loaded: Subject | None = SubjectReference(os.path.relpath(file)).load()
        else:
            loaded = subject_of(member, name)
        if loaded is None:
            raise UserError(f"{name} is not a machine or another subject")
        loaded.name = name
        return loaded

    def _update_store(self, store: Store, number: int) -> None:
        """Store how to find the subject; delete earlier campaigns of this test without faults."""
        added = {"subject": self._reference.to_json(), _MADE_BY: self._nodeid}
        store.update_campaign(number, options=store.campaign(number).options | added)
        with contextlib.suppress(UserError):  # another process may be writing; try next time
            for record in store.campaigns():
                mine = record.options.get(_MADE_BY) == self._nodeid and record.id < number
                if mine and record.status == "finished" and not store.faults(record.id):
                    store.delete_campaign(record.id)

    def raise_fault(self) -> None:
        """Run reduced tests as code in this process, so that a debugger stops at the exception.

        Tests that would end the process, and the debugger with it, are not run.
        """
        for test in self.failure.raising:
            if self._subject.suffix == ".py":
                code = self._subject.code(test)
                linecache.cache["<test>"] = (len(code), None, code.splitlines(True), "<test>")
                exec(compile(code, "<test>", "exec"), {"__name__": "__test__"})
