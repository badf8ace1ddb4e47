"""Making tests smaller while they stay interesting."""

from swarmtest.reduction.criteria import (
    CoverageKept,
    Criterion,
    MutantsKept,
    Repeated,
    TargetsKept,
    first_to_add,
)
from swarmtest.reduction.galloping import AskedAs, minimised
from swarmtest.reduction.metrics import (
    Kendall,
    kendall_tau,
    preservation_rate,
    randomly_reduced,
    size_reduction_rate,
)
from swarmtest.reduction.reducer import NotInteresting, Progress, Reducer, Reduction
from swarmtest.reduction.shell import ShellCommand
from swarmtest.reduction.values import (
    in_canonical_order,
    nearest_to_zero,
    renamed,
    shrunk_values,
)

__all__ = [
    "AskedAs",
    "CoverageKept",
    "Criterion",
    "Kendall",
    "MutantsKept",
    "NotInteresting",
    "Progress",
    "Reducer",
    "Reduction",
    "Repeated",
    "ShellCommand",
    "TargetsKept",
    "first_to_add",
    "in_canonical_order",
    "kendall_tau",
    "minimised",
    "nearest_to_zero",
    "preservation_rate",
    "randomly_reduced",
    "renamed",
    "shrunk_values",
    "size_reduction_rate",
]
