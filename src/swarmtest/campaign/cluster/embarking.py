"""From the engine that a user chose to one that runs, with the subject on its way."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from swarmtest.campaign.engine import Engine
from swarmtest.campaign.engines import EngineChoice
from swarmtest.campaign.host import Setup
from swarmtest.errors import UserError
from swarmtest.subjects.loading import SubjectReference


def cluster_engine(
    choice: EngineChoice,
    reference: SubjectReference,
    job_of: Callable[[SubjectReference], Any],
    seconds: float,
    memory: int | None,
    coverage: dict[str, Any] | None,
) -> Engine:
    """An engine for a subject that this process has loaded.

    `job_of`: makes a picklable function that makes the job. `seconds`: of one test; `memory`: of
    one worker, None for its share of its machine.
    """
    try:
        from swarmtest.campaign.cluster.engine import DaskEngine
    except ImportError:
        raise UserError(
            f"--engine {choice.text} needs Dask: pip install 'swarmtest[dask]'"
        ) from None
    from swarmtest.campaign.cluster.shipping import cargo_of, movable, shipment_of

    setup = Setup(job_of(movable(reference)), seconds, memory or 0)
    shipment = shipment_of(cargo_of(reference), setup, coverage, memory)
    return DaskEngine(_place(choice), shipment, seconds)


def _place(choice: EngineChoice) -> Any:
    """The way to the workers."""
    if choice.kind != "dask":
        from swarmtest.campaign.cluster.job_queues import JobQueue

        return JobQueue(choice)
    from swarmtest.campaign.cluster.place import Scheduler

    tls = {
        option.removeprefix("tls-"): str(choice.options[option])
        for option in ("tls-ca", "tls-cert", "tls-key")
        if option in choice.options
    }
    for option, file in tls.items():
        if not os.path.isfile(file):
            raise UserError(f"--engine-option tls-{option}: no such file: {file}")
    place = Scheduler(choice.address, tls=tls)
    place.connect = choice.seconds("connect", place.connect)
    place.patience = choice.seconds("patience", place.patience)
    return place
