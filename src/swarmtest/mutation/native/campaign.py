"""Mutants of the C program that a stored campaign has tested."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from swarmtest.errors import UserError
from swarmtest.mutation.campaign_tests import check_features, draw_trials, tests_of
from swarmtest.mutation.matrix import KillMatrix
from swarmtest.mutation.native.kill_matrix import Show, native_kill_matrix
from swarmtest.store import Store
from swarmtest.subjects.command import CommandSubject
from swarmtest.subjects.loading import SubjectReference


def mutate_c_campaign(
    store: Store,
    campaign: int,
    files: Iterable[str] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Mapping[str, Collection[int]] | None = None,
    sample: int | None = None,
    tests: int = 1000,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = False,
    on_progress: Show | None = None,
) -> KillMatrix:
    """The kill matrix of a campaign's tests, named ``CAMPAIGN#TRIAL``, for a C program."""
    record = store.campaign(campaign)
    subject = SubjectReference.from_json(record.options["subject"]).load()
    if not isinstance(subject, CommandSubject):
        raise UserError(f"{subject.name} runs no commands, so there is no C program to mutate")
    named = list(files)
    for file in named:
        if file.endswith(".py"):
            raise UserError(
                f"{file}: campaign {campaign} runs the commands of {subject.name}: its mutants are "
                "made of C files (.c)"
            )
    check_features(subject, record)
    trials = draw_trials(store, campaign, tests, seed)
    made = tests_of(store, record, subject, trials, subject.seconds or 0.0, workers)
    if not made:
        raise UserError(f"campaign {campaign} has no test that can be made again")
    return native_kill_matrix(
        subject,
        made,
        named,
        operators=operators,
        lines=lines,
        sample=sample,
        seed=seed,
        workers=workers,
        first_kill=first_kill,
        on_progress=on_progress,
    )
