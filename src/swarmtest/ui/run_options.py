"""Options of commands that run tests, and what their values mean."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from swarmtest.campaign.budget import Budget, check_workers, parse_bytes, parse_seconds
from swarmtest.campaign.failing_faults import FAIL_ON
from swarmtest.campaign.reduced_faults import ReductionTime
from swarmtest.core.errors import UserError
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.coverage.options import PROBES, CoverageOptions
from swarmtest.processes.limits import memory_limited
from swarmtest.subjects.learned_values import SUFFIX
from swarmtest.subjects.loading import SubjectReference
from swarmtest.ui import completion
from swarmtest.ui.options import Command

if TYPE_CHECKING:
    from swarmtest.campaign.executors.executor import ExecutorChoice


def _with_all(options: Sequence[Callable[[Any], Any]], command: Command) -> Command:
    """Add options to a command; its help lists them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def budget_options(command: Command) -> Command:
    """Add the options that limit a campaign."""
    options = [
        click.option("-n", "--tests", type=int, metavar="N", help="Stop after N tests."),
        click.option("--time", "wall", metavar="TIME", help="Stop after this time: 30s, 5m, 2h."),
        click.option(
            "--cpu-time", "cpu", metavar="TIME", help="Stop when tests have used this CPU time."
        ),
        click.option(
            "--stop-after-faults",
            "max_faults",
            type=int,
            metavar="N",
            help="Stop when N faults are found.",
        ),
        click.option("-x", "first", is_flag=True, help="Stop at the first fault."),
        click.option(
            "--saturation",
            type=int,
            metavar="K",
            help="Stop after K tests in a row that reach nothing new.",
        ),
    ]
    return _with_all(options, command)


def view_options(command: Command) -> Command:
    """Add the options for how progress and results are shown."""
    command = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON lines, for programs."
    )(command)
    return click.option("-q", "--quiet", is_flag=True, help="Print only the result, no progress.")(
        command
    )


def subject_options(command: Command) -> Command:
    """Add the options for how a subject is tested."""
    options = [
        click.option(
            "--steps",
            metavar="N | LOW-HIGH",
            help="Steps in a test, instead of what the machine says.",
        ),
        timeout_option,
        memory_option,
        click.option(
            "--api",
            is_flag=True,
            help="PATH is MODULE:CLASS; test the public methods of the class.",
        ),
        click.option(
            "--like",
            metavar="MODEL",
            help="PATH is MODULE:CLASS; compare the class with a ready model: list, dict, set, "
            "deque, OrderedDict, bytearray, array, queue, heap, file, ...",
        ),
        click.option(
            "--without",
            multiple=True,
            metavar="NAME",
            help="With --api and --like: a method or check to leave out. May be repeated.",
        ),
        click.option(
            "--raises",
            multiple=True,
            metavar="EXCEPTION",
            help="With --api and --like: an exception that is a correct outcome of a call. May be "
            "repeated.",
        ),
        click.option(
            "--values",
            "learned",
            metavar="FILE",
            help="With --api: values for arguments, as `swarmtest learn` writes them.  [default: "
            "PACKAGE.values, if there is one]",
        ),
        click.option("--network", is_flag=True, help="With --api: let tests reach other hosts."),
        click.option(
            "--value-features/--no-value-features",
            default=None,
            help="For machines: whether classes of argument values (options, zero, negative, "
            "empty, repeated, ...) are features too.  [default: what the machine says]",
        ),
    ]
    return _with_all(options, command)


def coverage_options(command: Command) -> Command:
    """Add the options for what is watched while tests run."""
    options = [
        click.option(
            "--coverage",
            "kinds",
            metavar="KIND,...",
            help="Measure what tests reach: line, block, branch, predicate, path, prime (paths),"
            " du (definition-use paths).",
        ),
        click.option(
            "--cover",
            multiple=True,
            metavar="NAME",
            help="A module, package or path to measure. May be repeated.  [default: what the file "
            "of the machine imports, and modules beside it]",
        ),
        click.option(
            "--probes",
            type=click.Choice(PROBES),
            default="auto",
            show_default=True,
            help="How to watch: by probes in the source, or by the interpreter (lines only, Python "
            "3.12+).",
        ),
    ]
    return _with_all(options, command)


def timeout_option(command: Command) -> Command:
    """Add the option ``--timeout``, in seconds; its value is None if it is not given."""
    return timeout_option_of("at most 10s; for commands, their own limits")(command)


def timeout_option_of(default: str) -> Callable[[Command], Command]:
    """Return the option ``--timeout`` of a command with a default of its own."""

    def seconds(context: click.Context, parameter: object, text: str | None) -> float | None:
        return None if text is None else parse_seconds(text)

    return click.option(
        "--timeout",
        metavar="TIME",
        callback=seconds,
        help=f"Time limit of one test.  [default: {default}]",
    )


_MIN_MEMORY = 64 << 20


def _memory_size(text: str) -> int:
    """Return bytes; 0 is no limit."""
    size = 0 if text == "none" else parse_bytes(text)
    if 0 < size < _MIN_MEMORY:
        raise UserError(f"--memory {text}: a worker needs at least 64MB")
    return size


def memory_option(command: Command) -> Command:
    """Add the option ``--memory``: a number of bytes, 0 for no limit, or ``auto``."""

    def size(context: click.Context, parameter: object, text: str) -> int | str:
        return text if text == "auto" else _memory_size(text)

    return click.option(
        "--memory",
        default="auto",
        show_default=True,
        metavar="SIZE",
        callback=size,
        help="Memory limit of one worker, and of each native program that it runs: 512MB, 2GB, "
        "none; auto: its share of the machine.",
    )(command)


def own_memory_option(command: Command) -> Command:
    """Add the option ``--memory`` to a command that runs single tests; it limits this process.

    What this process starts inherits the limit, until the command ends.
    """

    def limit(context: click.Context, parameter: object, text: str) -> None:
        size = _memory_size(text)
        if size:
            context.with_resource(memory_limited(size))

    return click.option(
        "--memory",
        default="none",
        show_default=True,
        metavar="SIZE",
        callback=limit,
        expose_value=False,
        help="Memory limit of a test, and of each native program that it runs: 512MB, 2GB, none.",
    )(command)


def workers_option(command: Command) -> Command:
    """Add the option ``--workers``."""
    return click.option(
        "-j",
        "--workers",
        type=int,
        metavar="N",
        callback=lambda context, parameter, n: None if n is None else check_workers(n),
        help="Number of worker processes; 0 runs tests in this process, for debuggers.  "
        "[default: SWARMTEST_WORKERS, or all cores]",
    )(command)


def executor_options(command: Command) -> Command:
    """Add the options for where tests run; `parse_executor_options` reads them."""
    options = [
        click.option(
            "--executor",
            metavar="EXECUTOR",
            help="Where tests run: local, dask://HOST:PORT, slurm, pbs, kubernetes, MODULE:CLASS, "
            "or a .toml file that names one.  [default: SWARMTEST_EXECUTOR, or local]",
        ),
        click.option(
            "--executor-option",
            multiple=True,
            metavar="KEY=VALUE",
            help="An option of that executor, like jobs=4. May be repeated.",
        ),
        click.option("--engine", hidden=True),
        click.option("--engine-option", multiple=True, hidden=True),
    ]
    return _with_all(options, command)


def parse_executor_options(options: dict[str, Any]) -> ExecutorChoice:
    """Return the executor that the options of `executor_options`, or the environment, name.

    Old names are accepted, with a note on standard error: --engine, --engine-option and
    SWARMTEST_ENGINE.
    """
    from swarmtest.campaign.executors.executor import parse_executor

    if options["executor"] and options["engine"]:
        raise UserError("--engine is the old name of --executor: give one of them")
    text = options["executor"] or options["engine"] or os.environ.get("SWARMTEST_EXECUTOR")
    if options["engine"]:
        _note_old_name("--engine", "--executor")
    if options["engine_option"]:
        _note_old_name("--engine-option", "--executor-option")
    if not text and os.environ.get("SWARMTEST_ENGINE"):
        text = os.environ["SWARMTEST_ENGINE"]
        _note_old_name("SWARMTEST_ENGINE", "SWARMTEST_EXECUTOR")
    return parse_executor(text or "local", [*options["engine_option"], *options["executor_option"]])


def _note_old_name(old: str, new: str) -> None:
    click.echo(
        f"note: {old} is called {new} now; the old name will be removed in the next release",
        err=True,
    )


def fail_on_option(command: Command) -> Command:
    """Add the option ``--fail-on``; its value is None if it is not given."""
    return click.option(
        "--fail-on",
        type=click.Choice(FAIL_ON),
        help="Which faults give exit status 1: new (not seen by this store before, or back again), "
        "any, or never.  [default: any; with --avoid known: new]",
    )(command)


def avoid_option(command: Command) -> Command:
    """Add the option ``--avoid``."""
    return click.option(
        "--avoid",
        multiple=True,
        metavar="FAULT",
        shell_complete=completion.faults,
        help="Leave out the features that trigger a fault of an earlier campaign, so that other "
        "faults are found; `known`: all faults so far. May be repeated. If the fault shows "
        "nevertheless, it does not count as a failure.",
    )(command)


def tolerate_option(command: Command) -> Command:
    """Add the option ``--tolerate``."""
    return click.option(
        "--tolerate",
        multiple=True,
        metavar="FAULT",
        help="Go on with the test, with a fresh object, after this fault: its id, or a part of its "
        "text; `known`: all faults so far. May be repeated. They are counted, and do not fail.",
    )(command)


def reduce_options(command: Command) -> Command:
    """Add the options for whether, and for how long, faults are reduced at the end."""
    options = [
        click.option(
            "--no-reduce", is_flag=True, help="Do not reduce the tests of faults at the end."
        ),
        click.option(
            "--reduce-time",
            metavar="TIME",
            help="How long reducing may take, for all faults together.  [default: as long as the "
            "campaign took, from 20s to 60s, and 20s for each]",
        ),
    ]
    return _with_all(options, command)


def why_option(command: Command) -> Command:
    """Add the option for whether faults are explained at the end."""
    return click.option(
        "--no-why",
        is_flag=True,
        help="Do not explain faults by experiments on their reduced tests at the end.",
    )(command)


def parse_reduction_time(options: dict[str, Any]) -> ReductionTime | None:
    """Return the time that `reduce_options` allow for reduction; None if there is none at all."""
    text = options["reduce_time"]
    if options["no_reduce"]:
        if text is not None:
            raise UserError("--reduce-time and --no-reduce: give one of them")
        return None
    return ReductionTime(None if text is None else parse_seconds(text))


def parse_steps(text: str | None) -> tuple[int, int] | None:
    """Return the lowest and highest number of steps in a text like ``50`` or ``10-200``.

    >>> parse_steps("10-200")
    (10, 200)
    """
    if text is None:
        return None
    low, _, high = text.partition("-")
    try:
        steps = int(low), int(high or low)
    except ValueError:
        raise UserError(
            f"--steps is a number or a range, like 50 or 10-200, not {text!r}"
        ) from None
    if not 1 <= steps[0] <= steps[1]:
        raise UserError(f"--steps needs 1 <= LOW <= HIGH, not {text!r}")
    return steps


def parse_budget(options: dict[str, Any]) -> Budget | None:
    """Return the limits that the options set; None if they set none."""
    budget = Budget(
        tests=options["tests"],
        wall_seconds=parse_seconds(options["wall"]) if options["wall"] else None,
        cpu_seconds=parse_seconds(options["cpu"]) if options["cpu"] else None,
        faults=1 if options.get("first") else options.get("max_faults"),
        saturation=options.get("saturation"),
    )
    return budget if budget.to_json() else None


def parse_subject(path: str, options: dict[str, Any]) -> SubjectReference:
    """Return the subject that PATH and the options of `subject_options` name."""
    api, like = options["api"], options.get("like") or ""
    if api and like:
        raise UserError("--api and --like: give one of them")
    if options["raises"] and not (api or like):
        raise UserError("--raises goes with --api; for a machine, write @action(raises=...)")
    without = tuple(options.get("without", ()))
    if without and not (api or like):
        raise UserError("--without goes with --api and --like; a machine is a class to subclass")
    steps = parse_steps(options["steps"])
    raises = tuple(options["raises"])
    value_features = options.get("value_features")
    return SubjectReference(
        path,
        api,
        steps,
        raises,
        like=like,
        without=without,
        value_features=value_features,
        learned=_learned_values(path, api, options.get("learned")),
        network=bool(options.get("network")),
    )


def _learned_values(path: str, api: bool, given: str | None) -> str:
    """Return the file with recorded values of a class; empty if there is none."""
    if not api:
        if given:
            raise UserError("--values goes with --api; a machine says where its values come from")
        return ""
    if given:
        return given
    module = path.partition(":")[0]
    usual = f"{Path(module).stem if module.endswith('.py') else module.partition('.')[0]}{SUFFIX}"
    if not Path(usual).is_file():
        return ""
    click.echo(f"arguments are drawn from {usual} too", err=True)
    return usual


def parse_coverage(options: dict[str, Any]) -> CoverageOptions | None:
    """Return what the options of `coverage_options` ask for; None if they ask for nothing."""
    if options["kinds"] is None:
        if options["cover"]:
            raise UserError("--cover goes with --coverage: say what to watch, like --coverage line")
        return None
    kinds = parse_kinds(options["kinds"])
    return CoverageOptions(kinds, tuple(options["cover"]), options["probes"])


def parse_seed(text: str) -> int:
    """Return the seed that a text names: a number, or a random one for ``random``."""
    if text == "random":
        return secrets.randbelow(10**6)
    try:
        return int(text)
    except ValueError:
        raise UserError(f"--seed is a whole number or `random`, not {text!r}") from None
