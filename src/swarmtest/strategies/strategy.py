"""What a strategy is, and how one is named on the command line.

A strategy is any object with ``ask(space, trial, rng)`` that answers a `Proposal` (or a bare
`Configuration`). It may have ``tell(result)``, and then it learns: a campaign asks it in one place
and tells it every result in order of arrival. It may have ``prepare(space)``, called once before
the first trial, for work that should not be done per trial or per worker. One that learns may name
the targets that it learns from in ``wants``, a set of names; then only those are told, which is
much cheaper than all lines that a test reached. ``notes`` are lines for the user, said at the end.

In text, ``coin:p=0.3,n=100`` or ``coin(p=0.3, n=100)``; a strategy of your own is
``module:Class`` or ``path/to/file.py:Class``, with parameters after one more colon. An installed
package offers strategies by name with entry points in the group ``swarmtest.strategies``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.languages.user_objects import entry_point, entry_point_names, load_object

ENTRY_POINTS = "swarmtest.strategies"
"""The group in which installed packages offer strategies, and engines of searches, by name."""


@runtime_checkable
class Strategy(Protocol):
    """Chooses the next configuration.

    >>> class OnlyOne:
    ...     def ask(self, space, trial, rng):
    ...         return space.configuration([rng.choice(space.feature_names)])
    >>> isinstance(OnlyOne(), Strategy)
    True
    """

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal | Configuration:
        """The configuration of this trial."""


@runtime_checkable
class LearningStrategy(Strategy, Protocol):
    """A strategy that is told what came of its proposals.

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

    def tell(self, result: Result) -> None:
        """Learn from one result."""


_REGISTRY: dict[str, Callable[..., Strategy]] = {}

Maker = TypeVar("Maker", bound=Callable[..., Any])


def register(name: str) -> Callable[[Maker], Maker]:
    """Decorator for a class (or a function that makes one): a strategy known by a short name."""

    def add(maker: Maker) -> Maker:
        _REGISTRY[name] = maker
        if inspect.isclass(maker):
            setattr(maker, "strategy_name", name)  # noqa: B010  (the class does not declare it)
        return maker

    return add


def strategy_names() -> list[str]:
    """The short names of the built-in strategies.

    >>> "coin" in strategy_names()
    True
    """
    return sorted(_REGISTRY)


def describe_strategies() -> list[tuple[str, list[str], str]]:
    """Every built-in strategy: its name, its parameters with their defaults, and what it does.

    >>> next(parameters for name, parameters, _ in describe_strategies() if name == "sized")
    ['low=1', 'high=0']
    """
    found = []
    for name, maker in sorted(_REGISTRY.items()):
        doc = inspect.getdoc(maker) or ""
        parameters = [
            f"{p.name}={'...' if p.default is p.empty else p.default}"
            for p in inspect.signature(maker).parameters.values()
        ]
        found.append((name, parameters, doc.splitlines()[0]))
    return found


def parse_strategy(text: str) -> Strategy:
    """The strategy that a text names.

    >>> parse_strategy("coin:p=0.3")
    Coin(p=0.3, n=0)
    >>> parse_strategy("coin:q=0.3")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: strategy 'coin' has no parameter 'q'; known: by, n, p
    """
    text = text.strip()
    head, arguments = _split_head(text)
    if head in _REGISTRY:
        maker: Callable[..., Any] = _REGISTRY[head]
    elif ":" in head:
        maker = load_object(head, "strategy")
    else:
        maker = entry_point(ENTRY_POINTS, head)
        if maker is None:
            known = [*_REGISTRY, *entry_point_names(ENTRY_POINTS)]
            raise UserError(
                f"unknown strategy {head!r}{did_you_mean(head, known)} "
                "(one of your own is MODULE:CLASS)"
            )
    if not callable(maker):
        raise UserError(f"{head!r} is not a strategy: name a class, or a function that makes one")
    try:
        made = maker(**_parameters(maker, head, arguments))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"strategy {text!r}: {type(error).__name__}: {error}") from None
    check_strategy(made, head)
    if head not in _REGISTRY:
        # The class alone does not say in which file it was found, or with which parameters made.
        with contextlib.suppress(AttributeError):  # a class with __slots__
            object.__setattr__(made, "strategy_source", (head, arguments))
    strategy: Strategy = made
    return strategy


def as_strategy(strategy: str | Strategy) -> Strategy:
    """Return the strategy that a text names, or a strategy as it is, if it is one.

    >>> as_strategy("coin:p=0.3")
    Coin(p=0.3, n=0)
    """
    if isinstance(strategy, str):
        return parse_strategy(strategy)
    check_strategy(strategy)
    return strategy


def check_strategy(strategy: Any, name: str = "") -> None:
    """Raise `UserError` if an object is not a strategy: the line says what to write.

    >>> class Deaf:
    ...     def tell(self, result): pass
    >>> check_strategy(Deaf(), "mine.py:Deaf")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: 'mine.py:Deaf' is not a strategy: it has no method ask(space, trial, rng)
    """
    if inspect.isclass(strategy):
        shown = strategy.__qualname__
        raise UserError(f"{shown!r} is a class: write {shown}() for a strategy of its kind")
    if not isinstance(strategy, Strategy) or not callable(strategy.ask):
        shown = name or type(strategy).__qualname__
        raise UserError(f"{shown!r} is not a strategy: it has no method ask(space, trial, rng)")


def strategy_text(strategy: Strategy) -> str:
    """The text that names a strategy, for the store and for people.

    >>> strategy_text(parse_strategy("coin:p=0.3"))
    'coin:p=0.3'
    """
    head, arguments = _source(strategy)
    return f"{head}:{arguments}" if arguments else head


def called_text(strategy: Strategy) -> str:
    """The text that names a strategy inside another one.

    >>> called_text(parse_strategy("coin:p=0.3"))
    'coin(p=0.3)'
    """
    head, arguments = _source(strategy)
    return f"{head}({arguments})" if arguments else head


def _source(strategy: Strategy) -> tuple[str, str]:
    given: tuple[str, str] | None = getattr(strategy, "strategy_source", None)
    if given is not None:
        return given
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
    called = re.fullmatch(r"([^()]+)\((.*)\)", text, re.DOTALL)
    if called:
        return called[1].strip().replace("::", ":"), called[2]
    head, _, rest = text.replace("::", ":", 1).partition(":")
    if head in _REGISTRY or not rest or re.match(r"\w+\s*=", rest):
        return head, rest
    name, _, arguments = rest.partition(":")
    return f"{head}:{name}", arguments


def _parameters(maker: Any, head: str, arguments: str) -> dict[str, Any]:
    parse_own = getattr(maker, "parse_parameters", None)
    if parse_own is not None:
        own: dict[str, Any] = parse_own(arguments)
        return own
    known = inspect.signature(maker).parameters
    found: dict[str, Any] = {}
    for key, value in split_arguments(arguments, head):
        if key not in known:
            raise UserError(f"strategy {head!r} has no parameter {key!r}{did_you_mean(key, known)}")
        if key in found:
            raise UserError(f"strategy {head!r}: parameter {key!r} is given twice")
        found[key] = _converted(value, known[key], head)
    return found


def split_arguments(arguments: str, head: str) -> Iterator[tuple[str, str]]:
    """The ``key=value`` pairs of a text, split at commas that stand outside parentheses."""
    depth, start = 0, 0
    for at, char in enumerate(arguments + ","):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            piece, start = arguments[start:at].strip(), at + 1
            if piece:
                key, sign, value = piece.rpartition("=")
                if not sign:
                    raise UserError(f"strategy {head!r}: write parameters as NAME=VALUE: {piece!r}")
                yield key.strip(), value.strip()
    if depth:
        raise UserError(f"strategy {head!r}: parentheses do not match in {arguments!r}")


def _converted(value: str, parameter: inspect.Parameter, head: str) -> Any:
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
