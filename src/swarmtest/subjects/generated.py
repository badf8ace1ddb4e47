"""A function of the user's that makes tests, and what they are run on.

`generator` turns a function into a subject. The function gets a random source and the features of a
test, and returns the test: bytes, a text, or a list of texts. What is tested is a native program
(`swarmtest.coverage.Program`), whose coverage and faults become those of the test, or a function.
The generator runs in the process of the worker, so a test costs what it costs to make and to run.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import Constraint
from swarmtest.core.dimensions import Dimension
from swarmtest.core.errors import UserError
from swarmtest.core.faults import message_of
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import Covered, Hits
from swarmtest.subjects.subject import NoTest, Subject

FORMAT = "swarmtest generated test 1"
GeneratedTest: TypeAlias = bytes | str | list[str]
_TOKEN = re.compile(
    rb"[A-Za-z_][A-Za-z_0-9]*|[0-9][0-9A-Za-z_.]*|\s+|[\xc0-\xff][\x80-\xbf]*|.", re.DOTALL
)
_MOST_TOKENS = 20_000
"""A text of more tokens is reduced by lines only."""


@runtime_checkable
class Runnable(Protocol):
    """A program that runs on one input after another, such as `swarmtest.coverage.Program`."""

    def run(self, data: bytes) -> Any:
        """Run it on one input."""


Tested: TypeAlias = Runnable | Callable[[Any], Any]


def generator(
    features: Iterable[Dimension | str] | Space,
    run: Tested,
    *,
    constraints: Sequence[Constraint] = (),
    weighted: bool = False,
    raises: type[BaseException] | tuple[type[BaseException], ...] = (),
    suffix: str = ".txt",
    seconds: float | None = None,
) -> Callable[[Callable[[random.Random, Configuration], GeneratedTest]], GeneratorSubject]:
    """Make a function that generates tests the subject of campaigns.

    The function is called with a `random.Random` and the configuration of a test: ``"loops" in
    features`` says whether a feature is on, and ``features["size"]`` is the value of a setting. It
    returns bytes, a text, or a list of texts, which are the steps of the test. `run` is what is
    tested: a `swarmtest.coverage.Program`, or a function that is called with what was generated,
    and may return the run of a program. Exceptions in `raises` are a correct outcome.

    `features` are names and dimensions. `weighted`: the function makes use of weights between 0
    and 1 (``features["loops"]``). `suffix` is that of a saved test, and `seconds` the time that a
    test may take.

    >>> def total(lines):
    ...     numbers = [int(line) for line in lines]
    ...     assert sum(numbers) < 100, "overflow"
    >>> @generator(features=["large", "negative"], run=total)
    ... def sums(rng, features) -> list[str]:
    ...     sign = rng.choice([1, -1]) if "negative" in features else 1
    ...     return [str(sign * rng.randrange(40 if "large" in features else 4)) for _ in range(6)]
    >>> result = sums.execute(sums.space.default(), seed=4)
    >>> result.verdict.label, sums.space.feature_names
    ('passed', ('large', 'negative'))
    """
    space = features if isinstance(features, Space) else Space(list(features), constraints)

    def decorate(
        function: Callable[[random.Random, Configuration], GeneratedTest],
    ) -> GeneratorSubject:
        return GeneratorSubject(
            function,
            run,
            space,
            weighted=weighted,
            raises=raises,
            suffix=suffix,
            seconds=seconds,
        )

    return decorate


class GeneratorSubject(Subject):
    """The subject of a function that was decorated with `generator`; it can be called as before.

    >>> @generator(features=["short", "long"], run=len)
    ... def words(rng, features) -> str:
    ...     return "x" * (9 if "long" in features else 1)
    >>> words.generate(words.space.configuration(["short"]), seed=1)["text"]
    'x'
    """

    def __init__(
        self,
        function: Callable[[random.Random, Configuration], GeneratedTest],
        run: Tested,
        space: Space,
        *,
        weighted: bool = False,
        raises: type[BaseException] | tuple[type[BaseException], ...] = (),
        suffix: str = ".txt",
        seconds: float | None = None,
    ) -> None:
        name = getattr(function, "__qualname__", type(function).__name__)
        if not isinstance(run, Runnable) and not callable(run):
            raise UserError(f"@generator of {name}: run is a Program or a function, not {run!r}")
        self.function = function
        self.tested = run
        self.space = space
        self.name = f"{function.__module__}:{name}"
        self.harness = getattr(inspect.unwrap(function).__code__, "co_filename", "")
        self.weighted = weighted
        self.raises = raises
        self.suffix = suffix
        self.seconds = seconds if seconds is not None else getattr(run, "timeout", None)
        returned = function.__annotations__.get("return")
        self.part = "step" if str(returned).startswith(("list", "List")) else "line"
        self.__doc__ = function.__doc__

    def __call__(self, rng: random.Random, features: Any) -> GeneratedTest:
        """Return what the decorated function returns."""
        return self.function(rng, features)

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test and run it."""
        try:
            made = self._made(configuration, seed)
        except NoTest as error:
            return Result(Verdict.INVALID, missing=str(error))
        if self.journal is not None:
            self.journal(self._saved(made, configuration, seed))
        result = self._run(made)
        if result.verdict is Verdict.FAILED or self.keep_tests:
            return result._replace(test=self._saved(made, configuration, seed))
        return result

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the test of a configuration and a seed, as JSON data."""
        return self._saved(self._made(configuration, seed), configuration, seed)

    def run(self, test: Any) -> Result:
        """Run a saved test; this does not call the generator."""
        return self._run(content_of(test))._replace(test=test)

    def parts(self, test: Any) -> list[Any]:
        """Return the steps or the lines of a saved test; the bytes of one that is not text."""
        made = content_of(test)
        if isinstance(made, list):
            return list(made)
        if isinstance(made, str):
            return made.splitlines(keepends=True)
        return [made[i : i + 1] for i in range(len(made))]

    def with_parts(self, test: Any, parts: Sequence[Any]) -> Any:
        """Return a saved test with other parts."""
        made = content_of(test)
        if isinstance(made, list):
            return _with_content(test, list(parts))
        return _with_content(test, "".join(parts) if isinstance(made, str) else b"".join(parts))

    def size(self, test: Any) -> int:
        """Return the number of steps, or of lines that are not blank."""
        return _size(content_of(test))

    def code(self, test: Any) -> str:
        """Return the text of a saved test, a step on each line, or a dump if it is not text."""
        from swarmtest.subjects.command.test import CommandTest

        return CommandTest("", self.content(test)).shown

    def content(self, test: Any) -> bytes:
        """Return a saved test as a program gets it."""
        return input_of(content_of(test))

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return a smaller test for which `interesting` still holds.

        Steps are left out. A text loses blocks in braces, then lines, then words and signs; other
        bytes are left out one by one.
        """
        from swarmtest.reducer.reducer import ConvertedCriterion, minimised
        from swarmtest.subjects.command.reduction import reduced_text
        from swarmtest.subjects.command.test import CommandTest

        made = content_of(test)
        if isinstance(made, list):
            steps = ConvertedCriterion(interesting, lambda kept: _with_content(test, list(kept)))
            return _with_content(test, list(minimised(made, steps)))

        def with_bytes(content: bytes) -> Any:
            if isinstance(made, bytes):
                return _with_content(test, content)
            try:
                return _with_content(test, content.decode(errors="surrogatepass"))
            except UnicodeDecodeError:  # a part of a letter is no text
                return None

        whole = made if isinstance(made, bytes) else made.encode(errors="surrogatepass")
        criterion = ConvertedCriterion(interesting, lambda kept: with_bytes(kept.content))
        content = reduced_text(CommandTest("", whole), criterion).content
        tokens = _TOKEN.findall(content) if _is_text(content) else []
        if 1 < len(tokens) <= _MOST_TOKENS:
            joined = ConvertedCriterion(
                interesting, lambda kept: with_bytes(b"".join(kept)) if kept else None
            )
            content = b"".join(minimised(tokens, joined))
        return with_bytes(content)

    def _made(self, configuration: Configuration, seed: int) -> GeneratedTest:
        try:
            made = self.function(random.Random(seed), configuration)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{self.name}: the generator raised {message_of(error)}") from error
        if isinstance(made, bytes | str):
            return made
        if isinstance(made, list) and all(isinstance(step, str) for step in made):
            return made
        shown = repr(made) if len(repr(made)) < 60 else type(made).__name__
        raise UserError(
            f"{self.name}: the generator returned {shown}; return bytes, a text or a list of texts"
        )

    def _run(self, made: GeneratedTest) -> Result:
        steps = _size(made)
        try:
            ran = (
                self.tested.run(input_of(made))
                if isinstance(self.tested, Runnable)
                else self.tested(made)
            )
        except self.raises:
            return Result(Verdict.PASSED, steps=steps)
        except BaseException as error:
            return Result(Verdict.FAILED, self.fault_of(error), steps=steps)
        return result_of_run(ran, steps)

    def _saved(self, made: GeneratedTest, configuration: Configuration, seed: int) -> Any:
        facts = {"features": list(configuration.included), "seed": seed}
        return _with_content({"format": FORMAT, "subject": self.name, **facts}, made)


def result_of_run(ran: Any, steps: int) -> Result:
    """Return the result of a test from what the code under test returned for it.

    The run of a program has a fault and hits. A list, tuple or set of texts are events.
    """
    if isinstance(ran, Result):
        return ran if ran.steps else ran._replace(steps=steps)
    if isinstance(ran, list | tuple | set | frozenset):
        return Result(
            Verdict.PASSED, hits=tuple(sorted({f"event:{event}" for event in ran})), steps=steps
        )
    shows = getattr(ran, "fault", None)
    fault: Fault | None = shows() if callable(shows) else None
    verdict = Verdict.PASSED if fault is None else Verdict.FAILED
    if fault is not None and not isinstance(fault, Fault):
        raise UserError(f"what was run returned {type(ran).__name__}: its fault() is no Fault")
    if hasattr(ran, "hits") and hasattr(ran, "missing"):
        run: Covered = ran
        hits = run.hits  # read once: a library forgets what was read
        if hits is not None and not isinstance(hits, Hits):
            raise UserError(f"what was run returned {type(ran).__name__}: its hits are no Hits")
        covered = (hits,) if hits is not None else ()
        # Coverage that nobody asked for is not missing.
        missing = "" if run.missing == "coverage is off" else run.missing
        return Result(verdict, fault, steps=steps, covered=covered, missing=missing)
    return Result(verdict, fault, steps=steps)


def input_of(made: GeneratedTest) -> bytes:
    """Return a generated test as a program gets it: of a list, each text is a line.

    >>> input_of(["push 1", "pop"])
    b'push 1\\npop\\n'
    """
    if isinstance(made, bytes):
        return made
    text = made if isinstance(made, str) else "".join(f"{step}\n" for step in made)
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return text.encode(errors="surrogatepass")


def content_of(test: Any) -> GeneratedTest:
    """Return what was generated, from the JSON data of a saved test."""
    if not isinstance(test, Mapping) or test.get("format") != FORMAT:
        raise UserError(f"not a saved generated test (its format should be {FORMAT!r})")
    if isinstance(test.get("text"), str):
        return str(test["text"])
    steps = test.get("steps")
    if isinstance(steps, list) and all(isinstance(step, str) for step in steps):
        return list(steps)
    try:
        return base64.b64decode(test["base64"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise UserError("a saved generated test is broken: it has no 'text'") from None


def _with_content(test: Mapping[str, Any], made: GeneratedTest) -> dict[str, Any]:
    rest = {key: test[key] for key in test if key not in ("text", "steps", "base64")}
    if isinstance(made, str):
        return rest | {"text": made}
    if isinstance(made, list):
        return rest | {"steps": made}
    return rest | {"base64": base64.b64encode(made).decode()}


def _size(made: GeneratedTest) -> int:
    if isinstance(made, list):
        return len(made)
    lines = made.split("\n") if isinstance(made, str) else made.split(b"\n")
    return sum(1 for line in lines if line.strip()) or 1


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
