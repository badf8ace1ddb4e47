"""The interface of strategies, and their names on the command line.

A strategy is any object with a method `ask`; it need not derive from `Strategy`. One that also has
`tell` learns, see `LearningStrategy`. Everything else is optional and listed in `Strategy`.

The name of a strategy is written ``coin:p=0.3,n=100`` or ``coin(p=0.3, n=100)``; a user's own
strategy is ``module:Class`` or ``path/to/file.py:Class``, with parameters after another colon. An
installed package offers strategies by name with entry points in the group ``swarmtest.strategies``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import re
import sys
import sysconfig
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.core.strategy_names import current_strategy_text, split_arguments
from swarmtest.languages.user_objects import entry_point, entry_point_names, load_object

ENTRY_POINTS = "swarmtest.strategies"
"""The group in which installed packages offer strategies, and engines of searches, by name."""


_REQUIRED = {
    "ask": "def ask(self, space, trial, rng), which returns a Proposal or a configuration",
    "tell": "def tell(self, result), or leave wants out",
}
"""What a strategy has to define; `tell` only if it says what it `wants` to learn from."""


@runtime_checkable
class Strategy(Protocol):
    """An object that chooses the next configuration.

    A new strategy has to define `ask`. It can also define:

    - ``tell(result)``: called with each result, in the order of arrival. The strategy then learns,
      and a campaign asks it in one process only.
    - ``wants``: the names of the targets that a strategy with `tell` learns from. Results then
      contain only these hits, which is much cheaper than all lines that a test reached.
    - ``prepare(space)``: called once before the first trial, for work that should not be repeated
      for each trial or worker.
    - ``ask_many(space, trials, campaign_seed)``: returns the proposals of several trials at once,
      the same as `ask` would, or None where it cannot. It is there for speed.
    - ``notes``: lines for the user, shown at the end of the campaign.
    - ``parameters_text()`` and the class method ``parse_parameters(text)``: write and read the
      parameters. By default they are the fields of a dataclass, or those of ``__init__``.

    Whatever `ask` draws comes from `rng`, so that a trial can be repeated from its number.

    >>> class OnlyOne:
    ...     def ask(self, space, trial, rng):
    ...         return space.configuration([rng.choice(space.feature_names)])
    >>> isinstance(OnlyOne(), Strategy)
    True
    """

    @abstractmethod
    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal | Configuration:
        """Return the configuration of this trial, in a `Proposal` if its odds are known."""


@runtime_checkable
class LearningStrategy(Strategy, Protocol):
    """A strategy that learns from the results of its proposals.

    >>> class Repeat:
    ...     "Propose again what failed last."
    ...     last = None
    ...     def ask(self, space, trial, rng):
    ...         return self.last or space.configuration([rng.choice(space.feature_names)])
    ...     def tell(self, result):
    ...         self.last = result.configuration if result.fault else None
    >>> isinstance(Repeat(), LearningStrategy)
    True
    """

    @abstractmethod
    def tell(self, result: Result) -> None:
        """Learn from one result."""


_REGISTRY: dict[str, Callable[..., Strategy]] = {}

Maker = TypeVar("Maker", bound=Callable[..., Any])


def register(name: str) -> Callable[[Maker], Maker]:
    """Return a decorator that registers a class, or a function that returns a strategy.

    The first line of its docstring describes the strategy to users.
    """

    def add(factory: Maker) -> Maker:
        _REGISTRY[name] = factory
        if inspect.isclass(factory):
            setattr(factory, "strategy_name", name)  # noqa: B010  (the class does not declare it)
        return factory

    return add


def strategy_names() -> list[str]:
    """Return the short names of the built-in strategies.

    >>> "coin" in strategy_names()
    True
    """
    return sorted(_REGISTRY)


def describe_strategies() -> list[tuple[str, list[str], str]]:
    """Return the name, the parameters and the description of each built-in strategy.

    Parameters are written with their defaults.

    >>> next(parameters for name, parameters, _ in describe_strategies() if name == "sized")
    ['low=1', 'high=0']
    """
    descriptions = []
    for name, factory in sorted(_REGISTRY.items()):
        doc = inspect.getdoc(factory) or ""
        parameters = [
            f"{p.name}={'...' if p.default is p.empty else p.default}"
            for p in inspect.signature(factory).parameters.values()
        ]
        descriptions.append((name, parameters, doc.splitlines()[0]))
    return descriptions


def parse_strategy(text: str) -> Strategy:
    """Return the strategy with this name and parameters.

    >>> parse_strategy("coin:p=0.3")
    Coin(p=0.3, n=0)
    >>> parse_strategy("coin:q=0.3")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: strategy 'coin' has no parameter 'q'; known: by, n, p
    """
    text = current_strategy_text(text.strip())
    head, arguments = _split_head(text)
    if head in _REGISTRY:
        factory: Callable[..., Any] = _REGISTRY[head]
    elif ":" in head:
        factory = load_object(head, "strategy")
    else:
        factory = entry_point(ENTRY_POINTS, head)
        if factory is None:
            known = [*_REGISTRY, *entry_point_names(ENTRY_POINTS)]
            raise UserError(
                f"unknown strategy {head!r}{did_you_mean(head, known)} "
                "(one of your own is MODULE:CLASS)"
            )
    if not callable(factory):
        raise UserError(f"{head!r} is not a strategy: name a class, or a function that makes one")
    abstract: frozenset[str] = getattr(factory, "__abstractmethods__", frozenset())
    missing = abstract & _REQUIRED.keys()
    if missing:  # a class that derives from Strategy
        raise _incomplete(head, min(missing))
    if head not in _REGISTRY and ":" in head:
        _refuse_other_calls(factory, head)
    try:
        created = factory(**_parameters(factory, head, arguments))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"strategy {text!r}: {type(error).__name__}: {error}") from None
    check_strategy(created, head)
    if head not in _REGISTRY:
        # The class alone does not say in which file it was found, or with which parameters
        with contextlib.suppress(AttributeError):  # a class with __slots__
            object.__setattr__(created, "strategy_source", (head, arguments))
    strategy: Strategy = created
    return strategy


def _refuse_other_calls(factory: Callable[..., Any], head: str) -> None:
    """Refuse what makes no strategy, before it is called.

    The text may be that of a stored campaign: `resume` would call ``os:system:command=...``.
    """
    if inspect.isclass(factory):
        if not callable(getattr(factory, "ask", None)):
            raise _incomplete(head, "ask")
        return
    module = sys.modules.get(str(getattr(factory, "__module__", "")))
    file = os.path.realpath(getattr(module, "__file__", None) or os.sep)
    installed = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    own = inspect.isfunction(factory) and file != os.sep
    if not own or any(file.startswith(os.path.realpath(path) + os.sep) for path in installed):
        raise UserError(
            f"{head!r} is not a strategy: name a class with the method ask, or a function in a "
            "file of yours that makes one"
        )


def as_strategy(strategy: str | Strategy) -> Strategy:
    """Return the strategy with this name; return a strategy unchanged.

    Raise `UserError` if it is neither.

    >>> as_strategy("coin:p=0.3")
    Coin(p=0.3, n=0)
    """
    if isinstance(strategy, str):
        return parse_strategy(strategy)
    check_strategy(strategy)
    return strategy


def check_strategy(strategy: Any, name: str = "") -> None:
    """Raise `UserError` if an object is not a strategy; the message says what to write.

    >>> class Deaf:
    ...     def tell(self, result): pass
    >>> check_strategy(Deaf(), "mine.py:Deaf")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: mine.py:Deaf: an incomplete strategy, it has no method ask: write \
def ask(self, space, trial, rng), which returns a Proposal or a configuration
    """
    if inspect.isclass(strategy):
        shown = strategy.__qualname__
        raise UserError(f"{shown!r} is a class: write {shown}() for a strategy of its kind")
    if type(strategy).__module__ == "builtins":
        raise UserError(f"{strategy!r} is not a strategy: name one, or write an object with ask()")
    shown = name or type(strategy).__qualname__
    if not callable(getattr(strategy, "ask", None)):
        raise _incomplete(shown, "ask")
    if hasattr(strategy, "wants") and not callable(getattr(strategy, "tell", None)):
        raise _incomplete(shown, "tell")


def _incomplete(name: str, method: str) -> UserError:
    return UserError(
        f"{name}: an incomplete strategy, it has no method {method}: write {_REQUIRED[method]}"
    )


def strategy_text(strategy: Strategy) -> str:
    """Return the text that names a strategy, for the store and for people.

    >>> strategy_text(parse_strategy("coin:p=0.3"))
    'coin:p=0.3'
    """
    head, arguments = _name_and_arguments(strategy)
    return f"{head}:{arguments}" if arguments else head


def called_text(strategy: Strategy) -> str:
    """Return the text that names a strategy inside another one.

    >>> called_text(parse_strategy("coin:p=0.3"))
    'coin(p=0.3)'
    """
    head, arguments = _name_and_arguments(strategy)
    return f"{head}({arguments})" if arguments else head


def _name_and_arguments(strategy: Strategy) -> tuple[str, str]:
    """Return the name of a strategy and its parameters as text."""
    parsed: tuple[str, str] | None = getattr(strategy, "strategy_source", None)
    if parsed is not None:
        return parsed
    cls = type(strategy)
    name: str = getattr(cls, "strategy_name", f"{cls.__module__}:{cls.__qualname__}")
    write = getattr(strategy, "parameters_text", None)
    if write is not None:
        return name, write()
    if not dataclasses.is_dataclass(strategy):
        return name, ""
    changed = [
        f"{f.name}={getattr(strategy, f.name)}"
        for f in dataclasses.fields(strategy)
        if f.init and getattr(strategy, f.name) != f.default
    ]
    return name, ",".join(changed)


def _split_head(text: str) -> tuple[str, str]:
    """Split a text into the name of a strategy and its parameters."""
    called = re.fullmatch(r"([^()]+)\((.*)\)", text, re.DOTALL)
    if called:
        return called[1].strip().replace("::", ":"), called[2]
    head, _, rest = text.replace("::", ":", 1).partition(":")
    if head in _REGISTRY or not rest or re.match(r"\w+\s*=", rest):
        return head, rest
    name, _, arguments = rest.partition(":")
    return f"{head}:{name}", arguments


def _parameters(factory: Any, head: str, arguments: str) -> dict[str, Any]:
    parse_own = getattr(factory, "parse_parameters", None)
    if parse_own is not None:
        own: dict[str, Any] = parse_own(arguments)
        return own
    signature = inspect.signature(factory).parameters
    values: dict[str, Any] = {}
    for key, value in split_arguments(arguments, head):
        if key not in signature:
            raise UserError(
                f"strategy {head!r} has no parameter {key!r}{did_you_mean(key, signature)}"
            )
        if key in values:
            raise UserError(f"strategy {head!r}: parameter {key!r} is given twice")
        values[key] = _converted(value, signature[key], head)
    return values


def _converted(value: str, parameter: inspect.Parameter, head: str) -> Any:
    """Return the value of a parameter, converted to the type of its default."""
    default = parameter.default
    if isinstance(default, bool):
        word = value.lower()
        if word in ("yes", "true", "1", "on"):
            return True
        if word in ("no", "false", "0", "off"):
            return False
        raise UserError(f"strategy {head!r}: {parameter.name} is yes or no, not {value!r}")
    if isinstance(default, str) or str(parameter.annotation) in ("str", "<class 'str'>"):
        return value
    whole = isinstance(default, int)
    for kind in (int,) if whole else (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    if isinstance(default, int | float) and "str" not in str(parameter.annotation):
        wanted = "a whole number" if re.fullmatch(r"[-+.\de]+", value) and whole else "a number"
        raise UserError(f"strategy {head!r}: {parameter.name} is {wanted}, not {value!r}")
    return value
