"""What a command subject's TOML file says, as values. Every option is explained here.

Words of commands may hold placeholders (see `words`): ``{test}``, ``{dir}``, ``{here}`` and
``{setting:NAME}``; in the generator's command also ``{seed}``, ``{features}``, ``{feature:NAME}``,
``{config}`` and ``{source}``. ``{dir}`` is the directory of the test at hand, in which commands
run; ``{here}`` is the directory of the TOML file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from swarmtest.core.space import Space
from swarmtest.subjects.command.toml_reader import placeholders

if TYPE_CHECKING:
    from swarmtest.subjects.grammar.generator import GrammarGenerator

MEANINGS = ("fail", "ignore", "invalid")
"""What something that happened to a step means: a fault; nothing; that the test does not count."""
COVER = ("auto", "fast", "gcov", "hits", "lcov")
"""How a step's coverage is collected: as `Program` does."""
EXTERNAL = ("none", "auto", "cvise", "creduce")


@dataclass(frozen=True)
class Call:
    """A command with everything around it: what the generator and every step have."""

    words: tuple[str, ...]
    """``command`` or ``run``: a list of words, or a text that is split as a shell does."""
    timeout: float = 10.0
    """Seconds of wall time; then it is ended, with everything that it started."""
    memory: int = 0
    """Bytes of address space, or a text like "2GB"; 0: no limit of its own."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that are set for it; the others are inherited."""
    cwd: str = ""
    """The directory it runs in; default: the test's own, ``{dir}``."""
    stdin: str = ""
    """A file that is its standard input, like ``{test}``; default: nothing to read."""
    expect: tuple[int, ...] = (0,)
    """Exit statuses that are fine; ``"any"``: all of them (an empty tuple)."""


@dataclass(frozen=True)
class FeatureForm:
    """What a feature adds to the generator's command when it is on, and when it is off."""

    name: str
    on: tuple[str, ...] = ()
    """Words that it adds to ``{features}`` when it is on. ``name = "--flag"`` is short for this."""
    off: tuple[str, ...] = ()
    """Words that it adds when it is off."""
    weight: tuple[str, ...] = ()
    """Words with ``{weight}`` (0.25) or ``{percent}`` (25): what it adds at any weight, unless `on`
    or `off` is there for 1 or 0."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the generator when it is on; they may have ``{weight}`` too."""
    env_off: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the generator when it is off."""
    config: str = ""
    """Text for the config file when it is on; it may have ``{weight}`` or ``{percent}``."""
    config_off: str = ""
    """Text for the config file when it is off."""
    lines: re.Pattern[str] | None = None
    """Lines of the generator's source that match are deleted when it is off."""
    appears: re.Pattern[str] | None = None
    """How often it really appears in a test: matches in the test's text."""

    @property
    def acts(self) -> bool:
        """Whether being on or off makes any difference to the generator, markers aside."""
        flags = self.on or self.off or self.weight
        return bool(flags or self.env or self.env_off or self.config or self.config_off)

    @property
    def weighted(self) -> bool:
        """Whether a weight between 0 and 1 means something."""
        texts = (*self.weight, *self.env.values(), self.config)
        return not {"weight", "percent"}.isdisjoint(placeholders(texts))


@dataclass(frozen=True)
class ConfigFile:
    """A config file that is written for every test; its path is ``{config}``."""

    text: str
    """With ``{features}`` for the texts of all features or ``{feature:NAME}`` for one's."""
    suffix: str = ""
    """How its name ends: that of the template, if it is a file."""


@dataclass(frozen=True)
class MarkedSource:
    """A generator's source from which marked lines are deleted; the copy's path is ``{source}``."""

    path: Path
    marker: str = "swarm: NAME"
    """How a line says to which features it belongs: ``swarm: loops`` or ``swarm: loops, calls``. It
    is deleted when one of them is off."""


@dataclass(frozen=True)
class Generate:
    """``[generate]``: where tests come from."""

    call: Call | None
    """The generator's command; None: tests come from a grammar."""
    suffix: str = ""
    """How the name of the test's file ends, like ".c"."""
    seed_bits: int = 32
    """Seeds are from 1 to 2**seed_bits - 1: for many generators 0 means the time of day."""
    separator: str = " "
    """Between the words of ``{features}`` inside a longer word."""
    config: ConfigFile | None = None
    source: MarkedSource | None = None
    seeded: bool = True
    """``seed = "none"``: the generator draws nothing at random, and needs no ``{seed}``."""
    grammar: GrammarGenerator | None = None
    """A grammar to make tests from, instead of a command; `start`, `depth` and `length` are its."""


@dataclass(frozen=True)
class Step:
    """``[[steps]]``: a command that is run on the test."""

    name: str
    call: Call
    needs: tuple[str, ...] = ()
    """Steps without whose success this one is skipped."""
    on_crash: str = "fail"
    """What an end by a signal means: "fail", "ignore" or "invalid"."""
    on_exit: str = "fail"
    """What an exit status that is not expected means."""
    on_timeout: str = "fail"
    """What running out of time means."""
    cover: str = ""
    """How its coverage is collected; empty: not at all. ``true`` in the file is "auto"."""
    sources: tuple[str, ...] | None = None
    """The files, directories or patterns whose lines are targets."""

    @property
    def may_invalidate(self) -> bool:
        """Whether it can say that a test does not count."""
        return "invalid" in (self.on_crash, self.on_exit, self.on_timeout)


@dataclass(frozen=True)
class Pattern:
    """A regular expression over a step's output that tells a fault."""

    name: str
    regex: re.Pattern[str]
    """Its named groups make the signature; without them, the whole match does."""
    steps: tuple[str, ...] = ()
    """The steps whose output is searched; empty: all."""


@dataclass(frozen=True)
class OracleSection:
    """``[oracle]``: what is a failure, beside what the steps say themselves."""

    patterns: tuple[Pattern, ...] = ()
    recognise: tuple[str, ...] = ()
    """Ready-made recognisers of messages, by name."""
    differential: tuple[tuple[str, ...], ...] = ()
    """Groups of steps whose output and exit status must agree."""
    python: str = ""
    """An oracle of the user's: ``file.py:function``, ``module:Class``, or the name of an entry
    point in the group ``swarmtest.oracles``. See `oracles.Oracle`."""


@dataclass(frozen=True)
class Reduce:
    """``[reduce]``: what happens after lines were removed one by one."""

    external: str = "none"
    """"cvise" or "creduce"; "auto": whichever is installed, for C and C++."""
    command: tuple[str, ...] = ()
    """Another reducer: words with ``{script}`` (exits with 0 if the file in its directory is still
    interesting) and ``{test}`` (the file, which it overwrites)."""
    seconds: float = 120.0
    """How long the external reducer may take."""


@dataclass(frozen=True)
class Mutate:
    """``[mutate]``: how the program is built, so that mutants of it can be."""

    build: str = ""
    """A shell line that is run in a copy of the TOML file's directory."""
    files: tuple[str, ...] = ()
    """The C files that are mutated unless others are named: paths or patterns, from there."""
    seconds: float = 600.0
    """How long a build may take."""


@dataclass(frozen=True)
class Specification:
    """A whole TOML file."""

    path: Path
    description: str
    generate: Generate
    forms: tuple[FeatureForm, ...]
    space: Space
    steps: tuple[Step, ...]
    oracle: OracleSection
    reduce: Reduce
    mutate: Mutate = Mutate()
    """How its mutants are built; a subject without has none."""

    @property
    def here(self) -> str:
        """The directory of the file, absolute."""
        return str(self.path.resolve().parent)

    @property
    def weighted(self) -> bool:
        """Whether weights between 0 and 1 mean something for every feature that can be off."""
        if self.generate.grammar is not None:
            return True
        mandatory = {feature.name for feature in self.space.features if feature.mandatory}
        free = [form for form in self.forms if form.name not in mandatory]
        return bool(free) and all(form.weighted for form in free)
