"""Hypothesis's rule-based state machines as subjects.

`RuleBasedSubject` is imported only when it is used, because it imports most of Hypothesis. A user
with a state machine has imported that already.
"""

from typing import TYPE_CHECKING, Any

from swarmtest.subjects.hypothesis.declaration import is_state_machine, state_machine_of

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

__all__ = ["RuleBasedSubject", "is_state_machine", "state_machine_of"]


def __getattr__(name: str) -> Any:
    if name == "RuleBasedSubject":
        from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

        return RuleBasedSubject
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
