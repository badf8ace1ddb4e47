"""Everything that swarmtest uses from Hypothesis beyond its public interface.

A version of Hypothesis that lacks one of these names is refused here, with one line. The names are
`Any`, because their types change from version to version. `fault_in_own_frames` is here because it
depends on how Hypothesis calls the user's functions.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import TracebackType
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault

OLDEST = "6.131"
"""The first version whose draws are a sequence of choices with constraints."""


def _from(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"hypothesis.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise UserError(_refusal(error)) from None


def _refusal(error: Exception) -> str:
    try:
        import hypothesis
    except ImportError:
        return "Hypothesis is not installed: pip install 'swarmtest[hypothesis]'"
    return (
        f"swarmtest cannot drive the state machines of Hypothesis {hypothesis.__version__} "
        f"({error}): pip install --upgrade 'hypothesis>={OLDEST}'"
    )


_BuildContext: Any = _from("control", "BuildContext")
skip_exceptions_to_reraise: Any = _from("core", "skip_exceptions_to_reraise")
choices_to_bytes: Any = _from("database", "choices_to_bytes")
StopTest: Any = _from("errors", "StopTest")
UnsatisfiedAssumption: Any = _from("errors", "UnsatisfiedAssumption")
choice_constraints_key: Any = _from("internal.conjecture.choice", "choice_constraints_key")
choice_from_index: Any = _from("internal.conjecture.choice", "choice_from_index")
choice_permitted: Any = _from("internal.conjecture.choice", "choice_permitted")
ConjectureData: Any = _from("internal.conjecture.data", "ConjectureData")
BUFFER_SIZE: Any = _from("internal.conjecture.engine", "BUFFER_SIZE")
HypothesisProvider: Any = _from("internal.conjecture.providers", "HypothesisProvider")
deterministic_PRNG: Any = _from("internal.entropy", "deterministic_PRNG")
float_to_int: Any = _from("internal.floats", "float_to_int")
int_to_float: Any = _from("internal.floats", "int_to_float")
function_digest: Any = _from("internal.reflection", "function_digest")
Bundle: Any = _from("stateful", "Bundle")
MultipleResults: Any = _from("stateful", "MultipleResults")
RuleBasedStateMachine: Any = _from("stateful", "RuleBasedStateMachine")
VarReference: Any = _from("stateful", "VarReference")
get_state_machine_test: Any = _from("stateful", "get_state_machine_test")
run_state_machine_as_test: Any = _from("stateful", "run_state_machine_as_test")
DataObject: Any = _from("strategies._internal.core", "DataObject")
unwrap_strategies: Any = _from("strategies._internal.lazy", "unwrap_strategies")
RepresentationPrinter: Any = _from("vendor.pretty", "RepresentationPrinter")

# In older versions the bundle arguments of a rule were strategies of a class of their own.
Reference: Any = getattr(
    importlib.import_module("hypothesis.stateful"), "BundleReferenceStrategy", Bundle
)

# Newer versions need the test that draws.
_TAKES_TEST = "wrapped_test" in inspect.signature(_BuildContext).parameters


def build_context(data: Any, test: Any) -> Any:
    """Return a context for drawing from `data`, inside which `assume` and the like work."""
    more = {"wrapped_test": test} if _TAKES_TEST else {}
    return _BuildContext(data, is_final=False, **more)


# Faults from exceptions that passed through frames of Hypothesis.

# Imported only after the checks above, which say in one line what is missing.
_HYPOTHESIS = str(Path(importlib.import_module("hypothesis").__file__ or "").parent)
_PROXY = "accept.<locals>."
"""Hypothesis calls decorated functions through a function that it compiles as the user's file."""


def fault_in_own_frames(
    error: BaseException, kind: str = "exception", label: str = "", operation: str = ""
) -> Fault:
    """Return the fault of an exception, without the frames of Hypothesis."""
    whole = error.__traceback__
    try:
        own = error.with_traceback(_without_hypothesis(whole))
        return fault_of_exception(own, kind, label, operation)
    finally:
        error.__traceback__ = whole


def _without_hypothesis(whole: TracebackType | None) -> TracebackType | None:
    """Return a traceback without Hypothesis's frames; the whole one if there are no others."""
    frames: list[TracebackType] = []
    proxy = None
    tb = whole
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.startswith(_HYPOTHESIS):
            if proxy is not None and frames[-1:] == [proxy]:
                frames.pop()
        else:
            frames.append(tb)
            proxy = tb if code.co_qualname.startswith(_PROXY) else None
        tb = tb.tb_next
    user: TracebackType | None = None
    for tb in reversed(frames):
        user = TracebackType(user, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return user or whole
