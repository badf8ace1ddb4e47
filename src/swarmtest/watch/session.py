"""A watch: test a subject again and again, and look at what changes in its code.

After a change, the tests of all faults are run again, then tests are aimed at the difference, and
then slices of time go to the campaign that still finds most. Everything that is known is in the
store: a watch that was ended, or killed, goes on where it was when it is started again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarmtest.campaign.liveness import running_process
from swarmtest.campaign.subject_version import commit_of
from swarmtest.core.formatting import plural
from swarmtest.store.fault_lives import (
    FIXED,
    FaultLife,
    fault_lives,
    is_exact,
    lives_by_recorded_fault,
    version_in,
)
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.ui.terminal.fault_lives import announce, state_text
from swarmtest.watch.campaign_choice import WatchedCampaign, choose_campaign, weigh_campaign
from swarmtest.watch.code_state import CodeState, WatchedCode, names_of
from swarmtest.watch.jobs import Event, JobEnd, run_job

WATCH = "watch"
"""The option of a stored campaign that a watch may continue."""
_LOOK_SECONDS = 1.0
"""How long to wait before the code is looked at again."""
_LOOK_SHARE = 0.02
"""The most of the time that looking may take."""
_SHORTEST = 0.5
"""The least seconds of a slice."""
_MARGIN = 600.0
"""Seconds that a command may take longer than its budget: it reduces and explains faults."""


@dataclass(frozen=True)
class WatchPlan:
    """What a watch does.

    >>> WatchPlan("stack.py", strategies=("", "coin")).slice_seconds
    30.0
    """

    path: str
    """The subject, as on the command line."""
    subject_words: tuple[str, ...] = ()
    """Options for commands that are given the subject: ``--api``, ``--steps=50``."""
    words: tuple[str, ...] = ()
    """Options for every command that runs tests: ``--workers=2``."""
    run_words: tuple[str, ...] = ()
    """Options for new campaigns: ``--coverage=line``."""
    strategies: tuple[str, ...] = ("",)
    slice_seconds: float = 30.0
    focus_seconds: float = 30.0
    on_save: bool = False
    seed: int = 0
    deadline: float | None = None
    """When to end, by `time.monotonic`."""


@dataclass
class WatchResult:
    """What a watch has done."""

    tests: int = 0
    slices: int = 0
    new: set[str] = field(default_factory=set)
    """Faults that the store had not seen before."""
    back: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        counts = [(self.new, "new"), (self.fixed, "fixed"), (self.back, "back again")]
        words = [f"{plural(len(faults), 'fault')} {word}" for faults, word in counts if faults]
        return ", ".join([plural(self.tests, "test"), *(words or ["no fault is new"])])


class WatchSession:
    """A watch of one subject."""

    def __init__(
        self, plan: WatchPlan, store: Store, url: str, code: WatchedCode, log: Callable[[str], None]
    ) -> None:
        """`url` names the store for a process, with its password; `log` prints a line."""
        self._plan = plan
        self._store = store
        self._url = url
        self._code = code
        self._log = log
        self._state = code.look()
        self._pause = _LOOK_SECONDS
        self._dirty_since: dict[int, CodeState] = {}
        """The code that campaigns of this watch tested whose version does not say it exactly."""
        self._told: set[str] = set()
        """The faults that were named since the last change."""
        self._refusal = ""
        """Why the tests of faults could not be run after the last change."""
        self._cannot_test = False
        """Whether the program could not be tested, as it was at least once."""
        self.result = WatchResult()

    def run(self) -> WatchResult:
        """Watch until the time is up or the user interrupts."""
        base = self._earlier_commit()
        self._begin()
        while not self._is_over():
            self._follow_change(base)
            while not self._is_over() and not self._has_moved():
                if self._run_slice():
                    base = self._state.commit  # a commit that cannot be tested is no base
                else:
                    self._await_change()
            earlier, self._state = self._state, self._code.look()
            if not self._is_over():
                self._log(self._change_since(earlier))
        self._log(f"time is up: {self.result}")
        return self.result

    def _begin(self) -> None:
        commit = self._state.commit
        at = f" at commit {self._code.describe(commit)}" if commit else ""
        watched = "commits and saved files" if self._plan.on_save else "commits"
        self._log(f"watching {self._plan.path}{at}: {watched}")

    def _change_since(self, earlier: CodeState) -> str:
        if self._state.commit != earlier.commit:
            return f"commit {self._code.describe(self._state.commit)}"
        return f"saved: {names_of(self._state.saved_since(earlier), self._code.top)}"

    # After a change: the faults that are known, then the difference.

    def _follow_change(self, base: str) -> None:
        subject = self.subject
        self._told, self._refusal = set(), ""
        if subject and fault_lives(self._store, subject):
            self._replay(subject)
        if self._refusal:
            return  # the program cannot be imported, or the next slice says why
        if base and not self._has_moved() and not self._is_over():
            self._focus(base)

    def _replay(self, subject: str) -> None:
        def tell(event: Event) -> None:
            if event["event"] != "replayed":
                return
            fault, before, after = (event.get(k) for k in ("fault", "state_before", "state"))
            self._note(str(fault), before, after)
            if (before, after) != (FIXED, FIXED):
                self._log(str(event.get("text", "")))
                self._told.add(str(fault))

        ended = self._job(["replay", "--faults", subject, "--json"], tell, _MARGIN)
        if ended.was_refused:
            self._refusal = f"the tests of faults could not be run: {ended.said}"

    def _note(self, fault: str, before: Any, after: Any) -> None:
        if before != FIXED and after == FIXED:
            self.result.fixed.add(fault)
        elif before == FIXED and after != FIXED:
            self.result.back.add(fault)

    def _focus(self, base: str) -> None:
        plan = self._plan
        seconds = min(plan.focus_seconds, self._left())
        if seconds < _SHORTEST or not self._code.has_commit(base):
            return
        words = ["focus", plan.path, f"--diff={base}", f"--time={seconds:.1f}s", "--allow-nothing"]
        words += [*plan.subject_words, *plan.words, "--no-base-check", *_QUIET]
        before = self._tests()
        ended = self._test_job(words, seconds)
        if ended.was_refused:
            self._log(f"no focus on the difference to {base[:12]}: {ended.said}")
        elif not ended.stopped:
            done = self._tests() - before
            what = plural(done, "test") if done else "nothing to aim at"
            self._log(f"focus on the difference to {base[:12]}: {what}")

    # Slices of campaigns.

    def _run_slice(self) -> bool:
        """Run a slice of the best campaign; return False if the subject cannot be tested."""
        now = self._code.look()
        if now.commit == self._state.commit:
            self._state = now  # files may have been saved that this watch does not wait for
        chosen = choose_campaign(self._candidates())
        plan = self._plan
        seconds = max(min(plan.slice_seconds, self._left()), _SHORTEST)
        last = self._last_number()
        if chosen.number:
            total = self._store.campaign(chosen.number).wall_seconds + seconds
            words = ["resume", str(chosen.number), f"--time={total:.1f}s", *plan.words]
        else:
            strategy = [f"--strategy={chosen.strategy}"] if chosen.strategy else []
            words = ["run", plan.path, *strategy, f"--seed={plan.seed + last}"]
            words += [f"--time={seconds:.1f}s", *plan.subject_words, *plan.run_words, *plan.words]
        ended = self._test_job([*words, "--allow-unused", *_QUIET], seconds)
        number = chosen.number or self._new_campaign(last)
        if number:
            self._keep(number, chosen)
        if ended.was_refused:
            where = self._code.describe(self._state.commit) if self._state.commit else "now"
            self._log(f"{plan.path} cannot be tested ({where}): {ended.said}; waiting for a change")
            self._cannot_test = True
            return False
        if self._refusal:
            self._log(self._refusal)
            self._refusal = ""
        return True

    def _keep(self, number: int, chosen: WatchedCampaign) -> None:
        """Mark a campaign as one that a watch may continue, and say what it did."""
        record = self._store.campaign(number)
        options = record.options | {WATCH: chosen.strategy}
        self._store.update_campaign(number, options=options)
        self._dirty_since.setdefault(number, self._state)
        done = self._store.summary(number)["trials"] - chosen.tests
        self.result.tests += done
        self.result.slices += 1
        self._log(
            f"campaign {number} ({record.label}): {plural(done, 'test')}, "
            f"{chosen.tests + done:,} in all; chosen: {chosen.promise}"
        )

    def _candidates(self) -> list[WatchedCampaign]:
        """Return, for each strategy, the campaign of this code that goes on, or a new one."""
        current = {str(record.options[WATCH]): record for record in self._own_campaigns()}
        return [
            weigh_campaign(self._store, current[strategy], strategy)
            if strategy in current
            else WatchedCampaign(0, strategy)
            for strategy in self._plan.strategies
        ]

    def _own_campaigns(self) -> list[CampaignRecord]:
        subject = self.subject
        return [
            record
            for record in self._store.campaigns()
            if record.subject == subject
            and isinstance(record.options.get(WATCH), str)
            and self._is_current(record)
            and not running_process(record)
        ]

    def _is_current(self, record: CampaignRecord) -> bool:
        """Return whether a campaign tested the code as it is now."""
        tested = self._dirty_since.get(record.id)
        if tested is not None:
            return tested == self._state
        version, commit = version_in(record), self._state.commit
        is_same = bool(commit) and commit.startswith(commit_of(version) or "-")
        return is_same and is_exact(version) and self._code.is_clean()

    # Commands.

    def _test_job(self, words: Sequence[str], seconds: float) -> JobEnd:
        """Run a command that runs tests, and say which faults it sees."""
        subject = self.subject
        before = lives_by_recorded_fault(self._store, subject) if subject else {}

        def tell(event: Event) -> None:
            if event["event"] == "fault":
                id, signature = str(event.get("id")), str(event.get("signature"))
                self._tell_fault(id, signature, before)

        ended = self._job(words, tell, seconds + _MARGIN)
        self._tell_rest(before)
        return ended

    def _tell_fault(self, id: str, signature: str, before: Mapping[str, FaultLife]) -> None:
        """Say that a fault was seen, unless it was said; if it was fixed, its life is needed."""
        life = before.get(id)
        if id in self._told or (life is not None and life.state == FIXED):
            return
        if life is None:
            self.result.new.add(id)
        self._told.add(id)
        record = FaultRecord(id, "", signature, "", 0, 0, 0, None)
        self._log(str(announce(record, before)))

    def _tell_rest(self, before: Mapping[str, FaultLife]) -> None:
        """Say which faults a command saw that it did not print, or that were fixed before.

        A command that is interrupted prints nothing of the tests that were still running.
        """
        lives = fault_lives(self._store, self.subject)
        seen = [
            life
            for life in lives.values()
            if life.fault not in self._told
            and (life.fault not in before or life.last_seen > before[life.fault].last_seen)
        ]
        for life in seen:
            earlier = before.get(life.fault)
            if earlier is None or earlier.state != FIXED:
                self._tell_fault(life.fault, self._signature(life), before)
                continue
            self._told.add(life.fault)
            self._note(life.fault, FIXED, life.state)
            self._log(f"fault {life.fault} is seen again: {state_text(life)}")

    def _signature(self, life: FaultLife) -> str:
        numbers = {event.campaign for event in life.sightings} - {0}
        faults = (fault for number in numbers for fault in self._store.faults(number))
        return next((fault.signature for fault in faults if fault.id == life.fault), "")

    def _job(self, words: Sequence[str], tell: Callable[[Event], None], seconds: float) -> JobEnd:
        return run_job(
            words,
            self._url,
            lambda: not self._has_moved() and not self._is_over(),
            tell,
            seconds=seconds,
            every=lambda: self._pause,
        )

    # Time and code.

    def _left(self) -> float:
        deadline = self._plan.deadline
        return float("inf") if deadline is None else max(deadline - time.monotonic(), 0.0)

    def _is_over(self) -> bool:
        # However short the time is, something is tested.
        return self._left() <= 0.0 and (self.result.slices > 0 or self._cannot_test)

    def _has_moved(self) -> bool:
        return self._looks_different(on_save=self._plan.on_save)

    def _looks_different(self, *, on_save: bool) -> bool:
        began = time.monotonic()
        moved = self._code.moved_on(self._state, on_save=on_save)
        took = time.monotonic() - began
        self._pause = max(_LOOK_SECONDS, took / _LOOK_SHARE)
        return moved

    def _await_change(self) -> None:
        """Wait for a commit or a saved file: the program cannot be tested as it is."""
        while not self._is_over() and not self._looks_different(on_save=True):
            time.sleep(min(self._pause, self._left()))
        if not self._has_moved():  # a file was saved, in a watch of commits: try once more
            self._state = self._code.look()

    # What the store says.

    @property
    def subject(self) -> str:
        """The name of the subject in the store; empty if it was not tested before."""
        path = self._plan.path
        names = [record.subject for record in self._store.campaigns()]
        own = [name for name in names if name == path or name.startswith((f"{path}::", f"{path}:"))]
        return own[-1] if own else ""

    def _earlier_commit(self) -> str:
        """Return the commit that was tested last before this one; empty if there is none."""
        subject = self.subject
        commits = [
            commit_of(version_in(record))
            for record in self._store.campaigns()
            if record.subject == subject
        ]
        other = [c for c in commits if c and not self._state.commit.startswith(c)]
        return other[-1] if other else ""

    def _tests(self) -> int:
        subject = self.subject
        records = [each for each in self._store.campaigns() if each.subject == subject]
        return sum(self._store.summary(record.id)["trials"] for record in records)

    def _last_number(self) -> int:
        return max((record.id for record in self._store.campaigns()), default=0)

    def _new_campaign(self, last: int) -> int:
        """Return the number of the campaign that a command has begun; 0 if it has begun none."""
        subject = self.subject
        new = [r.id for r in self._store.campaigns() if r.id > last and r.subject == subject]
        return new[0] if new else 0


_QUIET = ("--json", "--fail-on=never")
