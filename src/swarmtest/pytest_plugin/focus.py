"""``--swarm-focus=REV``: aim the tests of a machine at the changes since a git revision.

Coverage is installed in pytest's own process before anything of the program is imported, and so
works in the forks that run the machine's tests.
"""

from __future__ import annotations

import contextlib

import pytest

from swarmtest.campaign.campaign import Outcome
from swarmtest.core.errors import UserError
from swarmtest.focus.focus import Focus
from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.request import FocusRequest
from swarmtest.focus.views.terminal import hits_summary
from swarmtest.languages.places import NothingToAimAt
from swarmtest.pytest_plugin.coverage import WATCHING
from swarmtest.pytest_plugin.item import forking
from swarmtest.pytest_plugin.options import CampaignPlan
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import Subject


class FocusedRun:
    """A campaign of one machine, aimed at changes."""

    def __init__(
        self,
        config: pytest.Config,
        revision: str,
        plan: CampaignPlan,
        subject: Subject,
        reference: SubjectReference,
    ) -> None:
        if plan.strategy is not None:
            raise UserError("--swarm-focus chooses the configurations: omit --swarm-strategy")
        self._config = config
        self._revision = revision
        self._plan = plan
        self._subject = subject
        self._reference = reference

    def run(self, store: Store) -> tuple[Outcome, list[str]]:
        """Run the campaign; return its outcome, and lines about what it reached.

        A machine that cannot reach the changes is skipped.
        """
        # The steps of a TOML file measure coverage themselves, if at all.
        python = self._subject.suffix == ".py" or bool(self._subject.harness)
        focus = Focus(
            self._subject,
            FocusRequest(diff=self._revision),
            store,
            self._plan.budget,
            seed=self._plan.seed,
            workers=self._plan.workers,
            watching=self._config.stash[WATCHING] if python else None,
            reference=self._reference,
        )
        try:
            with contextlib.chdir(self._config.rootpath), forking(self._plan.workers > 0):
                focused = focus.run()
        except NothingToAimAt as error:
            pytest.skip(f"--swarm-focus: {error}")
        assert focus.outcome is not None
        self._name_the_subject(store, focused)
        return focus.outcome, self._lines(focused)

    def _name_the_subject(self, store: Store, focused: FocusOutcome) -> None:
        """Store the reference to the subject, also for baselines, to make faults replayable."""
        for campaign in focused.data_campaigns:
            record = store.campaign(campaign)
            if not record.options.get("subject"):
                added = {"subject": self._reference.to_json()}
                store.update_campaign(campaign, options=record.options | added)

    def _lines(self, focused: FocusOutcome) -> list[str]:
        lines = [f"aimed at changes since {self._revision}: {hits_summary(focused)}"]
        for fault in focused.faults:
            if fault.status == "old":
                lines.append(f"fault {fault.record.id} is in the base version too")
            elif fault.status == "new":
                lines.append(f"fault {fault.record.id} is new: the base version passes its test")
        return lines
