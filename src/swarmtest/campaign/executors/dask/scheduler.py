"""The Dask scheduler of a campaign: one that runs already, or one with jobs of a batch system."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from swarmtest.campaign.executors.executor import Executor, ExecutorChoice
from swarmtest.campaign.executors.host import HostSetup
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.subjects.loading import SubjectReference

# Workers that are jobs of a batch system, or pods: asked for by dask-jobqueue and dask-kubernetes.
#
# The scheduler of a batch system's jobs lives in the campaign's process and ends with it, and so
# do the jobs. Kubernetes runs its own.

_PATIENCE = 3600.0
"""Jobs wait in a queue."""
_CONNECT = 60.0


@dataclass(frozen=True)
class _System:
    """How to ask a batch system for workers."""

    module: str
    cluster: str
    extra: str
    """The package that must be installed."""
    submit: str = ""
    """The program that submits jobs."""


_SYSTEMS = {
    "slurm": _System("dask_jobqueue", "SLURMCluster", "jobqueue", "sbatch"),
    "pbs": _System("dask_jobqueue", "PBSCluster", "jobqueue", "qsub"),
    "kubernetes": _System("dask_kubernetes.operator", "KubeCluster", "kubernetes"),
}


class JobQueue:
    """Workers that are requested when the campaign starts, and released when it ends."""

    def __init__(self, choice: ExecutorChoice) -> None:
        self._system = _SYSTEMS[choice.kind]
        options = {name.replace("-", "_"): value for name, value in choice.options.items()}
        self.connect = _CONNECT
        self.patience = choice.seconds("patience", _PATIENCE)
        options.pop("patience", None)
        self._jobs = options.pop("jobs", 1)
        if not isinstance(self._jobs, int) or self._jobs < 1:
            raise UserError(
                f"--executor-option jobs={self._jobs}: write a number of jobs, 1 or more"
            )
        self.name = f"{choice.kind} ({self._jobs} job{'s' * (self._jobs != 1)})"
        self._kind = choice.kind
        self._cluster = self._make_cluster(options)

    def _make_cluster(self, options: dict[str, Any]) -> Any:
        if self._system.submit and not shutil.which(self._system.submit):
            raise UserError(
                f"--executor {self._kind}: there is no {self._system.submit} on this machine; "
                "start the campaign where jobs are submitted"
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
            raise UserError(f"--executor {self._kind}: {reason[0]}") from None
        if self._kind != "kubernetes":
            cluster.scale(jobs=self._jobs)
        return cluster

    def _class(self) -> Any:
        try:
            return getattr(importlib.import_module(self._system.module), self._system.cluster)
        except ImportError:
            package = self._system.module.partition(".")[0].replace("_", "-")
            raise UserError(
                f"--executor {self._kind} needs {package}: pip install "
                f"'swarmtest[{self._system.extra}]'"
            ) from None

    def _check(self, make: Any, options: dict[str, Any]) -> None:
        """Refuse unknown options: the cluster would report them in a traceback, or not at all."""
        classes = (*make.__mro__, *make.job_cls.__mro__)
        known = {
            name
            for cls in classes
            if "__init__" in vars(cls) and cls is not object
            for name, parameter in inspect.signature(cls.__init__).parameters.items()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name != "self"
        }
        for name in options:
            if name not in known:
                raise UserError(
                    f"--executor-option {name}: {self._system.cluster} has no such option"
                    f"{did_you_mean(name, sorted(known))}"
                )
        for name, example in (("cores", "4"), ("memory", "8GB")):
            if name not in options:
                raise UserError(
                    f"--executor {self._kind}: say what each job gets, like "
                    f"--executor-option {name}={example}"
                )

    def client(self) -> Any:
        """Return a connection to the cluster's scheduler."""
        import distributed

        connect: Any = distributed.Client
        return connect(self._cluster, timeout=_CONNECT, set_as_default=False, name="swarmtest")

    def job_script(self) -> str:
        """Return the script that is submitted for each job."""
        script: str = self._cluster.job_script()
        return script

    def unreachable(self, why: str) -> str:
        """Describe what was tried."""
        return f"--executor {self._kind}: no connection to the cluster's own scheduler ({why})"

    def close(self) -> None:
        """End the jobs."""
        with contextlib.suppress(Exception):
            self._cluster.close(timeout=10)


_CONNECT_SECONDS = 10.0
_SCHEDULER_PATIENCE = 300.0


class SchedulerAccess(Protocol):
    """A way to a scheduler."""

    @property
    def name(self) -> str:
        """How a user would name it."""

    connect: float
    """Seconds that the first connection may take."""
    patience: float
    """Seconds without any worker, or without the scheduler, after which a campaign gives up."""

    def client(self) -> Any:
        """Return a new connection; raise an exception of Dask if there is no answer."""

    def unreachable(self, why: str) -> str:
        """Describe in one line what was tried, if it cannot be connected."""

    def close(self) -> None:
        """End what was started for it."""


@dataclass
class RunningScheduler:
    """A scheduler that runs already."""

    address: str
    """``tcp://HOST:PORT`` or ``tls://HOST:PORT``."""
    connect: float = _CONNECT_SECONDS
    patience: float = _SCHEDULER_PATIENCE
    tls: dict[str, str] = field(default_factory=dict)
    """Files: ``ca``, ``cert``, ``key``; otherwise as Dask is configured."""
    _met: bool = False

    @property
    def name(self) -> str:
        """Its address."""
        return self.address

    def client(self) -> Any:
        """Return a new connection; the first has its time, later ones are tried repeatedly."""
        import distributed

        connect: Any = distributed.Client
        timeout = min(self.connect, 1.0) if self._met else self.connect
        security = self._security()
        _greet(self.address, security, timeout)
        client = connect(
            self.address,
            timeout=timeout,
            set_as_default=False,
            name="swarmtest",
            security=security,
        )
        self._met = True
        return client

    def _security(self) -> Any:
        if not self.address.startswith("tls://"):
            return None
        from distributed import security

        make: Any = security.Security
        files = {
            "tls_ca_file": self.tls.get("ca"),
            "tls_client_cert": self.tls.get("cert"),
            "tls_client_key": self.tls.get("key"),
        }
        given = {name: file for name, file in files.items() if file}
        security_options = make(require_encryption=True, **given)
        try:
            context = security_options.get_connection_args("client").get("ssl_context")
        except (OSError, ValueError) as error:
            raise UserError(f"{self.address}: cannot use its certificates: {error}") from None
        if context is None:
            raise UserError(
                f"{self.address}: name its certificates: --executor-option tls-ca=FILE "
                "(and tls-cert=FILE, tls-key=FILE), or configure Dask (distributed.comm.tls)"
            )
        return security_options

    def unreachable(self, why: str) -> str:
        """Describe what was tried."""
        return (
            f"no Dask scheduler answers at {self.address} (tried for {self.connect:g} s: {why}): "
            "start one with `dask scheduler`, or change --executor"
        )

    def close(self) -> None:
        """Do nothing: we did not start the scheduler."""


def _greet(address: str, security: Any, timeout: float) -> None:
    """Check once for a Dask scheduler: its client would wait for ever for another server."""
    from distributed.comm import core

    connect: Any = core.connect
    options = security.get_connection_args("client") if security else {}
    problems: list[BaseException] = []

    async def shake() -> None:
        try:
            # The connection has the timeout to itself, so that it can tell why there is none.
            met = await asyncio.wait_for(connect(address, timeout, **options), timeout + 1)
            met.abort()
        except TimeoutError:
            problems.append(OSError("what listens there is not a Dask scheduler"))
        except Exception as error:
            problems.append(error if isinstance(error, OSError) else OSError(str(error)))

    # A thread, because the campaign's may run a loop already, as in a notebook.
    shaking = threading.Thread(target=lambda: asyncio.run(shake()), daemon=True)
    shaking.start()
    shaking.join()
    if problems:
        raise problems[0]


# From the executor that a user chose to one that runs, with the subject on its way.


def cluster_executor(
    choice: ExecutorChoice,
    reference: SubjectReference,
    job_of: Callable[[SubjectReference], Any],
    seconds: float,
    memory: int | None,
    coverage: dict[str, Any] | None,
    identity: str,
) -> Executor:
    """Return an executor for a subject that this process has loaded.

    `job_of`: makes a picklable function that makes the job. `seconds`: of one test; `memory`: of
    one worker, None for its share of its machine. `identity`: `Subject.identity`.
    """
    try:
        import distributed  # noqa: F401 - what follows imports it only where it is used
    except ImportError:
        raise UserError(
            f"--executor {choice.text} needs Dask: pip install 'swarmtest[dask]'"
        ) from None
    from swarmtest.campaign.executors.dask.executor import DaskExecutor
    from swarmtest.campaign.executors.dask.packages import (
        bundle_of,
        relative_reference,
        requirements_of,
    )

    setup = HostSetup(job_of(relative_reference(reference)), seconds, memory or 0)
    bundle = bundle_of(requirements_of(reference), setup, coverage, memory)
    bundle["identity"] = identity
    return DaskExecutor(_scheduler_access(choice), bundle, seconds)


def _scheduler_access(choice: ExecutorChoice) -> SchedulerAccess:
    """Return the way to the scheduler."""
    if choice.kind != "dask":
        return JobQueue(choice)

    tls = {
        option.removeprefix("tls-"): str(choice.options[option])
        for option in ("tls-ca", "tls-cert", "tls-key")
        if option in choice.options
    }
    for option, file in tls.items():
        if not os.path.isfile(file):
            raise UserError(f"--executor-option tls-{option}: no such file: {file}")
    scheduler = RunningScheduler(choice.address, tls=tls)
    scheduler.connect = choice.seconds("connect", scheduler.connect)
    scheduler.patience = choice.seconds("patience", scheduler.patience)
    return scheduler
