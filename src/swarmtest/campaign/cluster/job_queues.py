"""Workers that are jobs of a batch system, or pods: asked for by dask-jobqueue and dask-kubernetes.

The scheduler of a batch system's jobs lives in the campaign's process and ends with it, and so do
the jobs. Kubernetes runs its own.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import shutil
from dataclasses import dataclass
from typing import Any

from swarmtest.campaign.engines import EngineChoice
from swarmtest.errors import UserError, did_you_mean

_PATIENCE = 3600.0
"""Jobs wait in a queue."""
_CONNECT = 60.0


@dataclass(frozen=True)
class _System:
    """How to ask for workers."""

    module: str
    cluster: str
    extra: str
    """What has to be installed."""
    submit: str = ""
    """The program that takes jobs."""


_SYSTEMS = {
    "slurm": _System("dask_jobqueue", "SLURMCluster", "jobqueue", "sbatch"),
    "pbs": _System("dask_jobqueue", "PBSCluster", "jobqueue", "qsub"),
    "kubernetes": _System("dask_kubernetes.operator", "KubeCluster", "kubernetes"),
}


class JobQueue:
    """Workers that are asked for when the campaign starts, and given back when it ends."""

    def __init__(self, choice: EngineChoice) -> None:
        self._system = _SYSTEMS[choice.kind]
        options = {name.replace("-", "_"): value for name, value in choice.options.items()}
        self.connect = _CONNECT
        self.patience = choice.seconds("patience", _PATIENCE)
        options.pop("patience", None)
        self._jobs = options.pop("jobs", 1)
        if not isinstance(self._jobs, int) or self._jobs < 1:
            raise UserError(f"--engine-option jobs={self._jobs}: how many jobs, 1 or more")
        self.name = f"{choice.kind} ({self._jobs} job{'s' * (self._jobs != 1)})"
        self._kind = choice.kind
        self._cluster = self._made(options)

    def _made(self, options: dict[str, Any]) -> Any:
        if self._system.submit and not shutil.which(self._system.submit):
            raise UserError(
                f"--engine {self._kind}: there is no {self._system.submit} on this machine; start "
                "the campaign where jobs are submitted"
            )
        make = self._class()
        if self._kind == "kubernetes":
            options = {"n_workers": self._jobs, "quiet": True} | options
        else:
            self._check(make, options)
            scheduler = {"dashboard": False} | options.pop("scheduler_options", {})
            if "host" in options:
                scheduler["host"] = options.pop("host")
            options |= {"scheduler_options": scheduler, "silence_logs": "critical"}
        try:
            cluster = make(**options)
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise UserError(f"--engine {self._kind}: {reason[0]}") from None
        if self._kind != "kubernetes":
            cluster.scale(jobs=self._jobs)
        return cluster

    def _class(self) -> Any:
        try:
            return getattr(importlib.import_module(self._system.module), self._system.cluster)
        except ImportError:
            package = self._system.module.partition(".")[0].replace("_", "-")
            raise UserError(
                f"--engine {self._kind} needs {package}: pip install "
                f"'swarmtest[{self._system.extra}]'"
            ) from None

    def _check(self, make: Any, options: dict[str, Any]) -> None:
        """Refuse what the cluster does not know: it would say so in a traceback, or not at all."""
        classes = (*make.__mro__, *make.job_cls.__mro__)
        known = {
            name
            for one in classes
            if "__init__" in vars(one) and one is not object
            for name, parameter in inspect.signature(one.__init__).parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name != "self"
        }
        for name in options:
            if name not in known:
                raise UserError(
                    f"--engine-option {name}: {self._system.cluster} has no such option"
                    f"{did_you_mean(name, sorted(known))}"
                )
        for name, example in (("cores", "4"), ("memory", "8GB")):
            if name not in options:
                raise UserError(
                    f"--engine {self._kind}: say what one job gets, like "
                    f"--engine-option {name}={example}"
                )

    def client(self) -> Any:
        """A connection to the cluster's scheduler."""
        import distributed

        connect: Any = distributed.Client
        return connect(self._cluster, timeout=_CONNECT, set_as_default=False, name="swarmtest")

    def job_script(self) -> str:
        """What is submitted, for each job."""
        script: str = self._cluster.job_script()
        return script

    def unreachable(self, why: str) -> str:
        """What was tried."""
        return f"--engine {self._kind}: no connection to the cluster's own scheduler ({why})"

    def close(self) -> None:
        """End the jobs."""
        with contextlib.suppress(Exception):
            self._cluster.close(timeout=10)
