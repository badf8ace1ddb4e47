"""The contents of a command subject's TOML file, as values. Every option is explained here.

The words of commands may contain placeholders (see `toml_reader`): ``{test}``, ``{dir}``,
``{here}`` and ``{setting:NAME}``; in the generator's command also ``{seed}``, ``{features}``,
``{feature:NAME}``, ``{config}`` and ``{source}``. ``{dir}`` is the directory of the current test,
in which commands run; ``{here}`` is the directory of the TOML file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from swarmtest.core.space import Space
from swarmtest.coverage.native.build import Build
from swarmtest.subjects.command.toml_reader import placeholders

if TYPE_CHECKING:
    from swarmtest.subjects.grammar.generator import GrammarGenerator

MEANINGS = ("fail", "ignore", "invalid")
"""What an event in a step means: a fault, nothing, or that the test does not count."""
COVER = ("auto", "fast", "gcov", "hits", "lcov")
"""How a step's coverage can be collected; the choices are those of `Program`."""
EXTERNAL = ("none", "auto", "cvise", "creduce")
"""The external reducers that can be named."""


@dataclass(frozen=True)
class CommandCall:
    """A command with its limits and environment; the generator and every step have one."""

    words: tuple[str, ...]
    """``command`` or ``run``: a list of words, or a text that is split as a shell does."""
    timeout: float = 10.0
    """Seconds of wall time; then the command is killed, with all processes that it started."""
    memory: int = 0
    """Bytes of address space, or a text like "2GB"; 0: no limit."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set; the others are inherited."""
    cwd: str = ""
    """The directory to run in; default: the directory of the test, ``{dir}``."""
    stdin: str = ""
    """A file to use as standard input, like ``{test}``; default: an empty input."""
    expect: tuple[int, ...] = (0,)
    """Exit statuses that mean success; ``"any"`` (here an empty tuple): all of them."""


@dataclass(frozen=True)
class FeatureForm:
    """What a feature adds to the generator's command when it is on, and when it is off."""

    name: str
    on: tuple[str, ...] = ()
    """Words to add to ``{features}`` when it is on. ``name = "--flag"`` is short for this."""
    off: tuple[str, ...] = ()
    """Words to add when it is off."""
    weight: tuple[str, ...] = ()
    """Words with ``{weight}`` (0.25) or ``{percent}`` (25), to add at any weight; at weight 1 or 0,
    `on` or `off` is used instead if it is set."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the generator when it is on; they may use ``{weight}`` too."""
    env_off: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the generator when it is off."""
    config: str = ""
    """Text for the config file when it is on; it may use ``{weight}`` or ``{percent}``."""
    config_off: str = ""
    """Text for the config file when it is off."""
    lines: re.Pattern[str] | None = None
    """Matching lines of the generator's source are deleted when it is off."""
    appears: re.Pattern[str] | None = None
    """The number of matches in a test's text is how often the feature appears in that test."""

    @property
    def acts(self) -> bool:
        """Whether on or off makes a difference to the generator, apart from marked lines."""
        flags = self.on or self.off or self.weight
        return bool(flags or self.env or self.env_off or self.config or self.config_off)

    @property
    def weighted(self) -> bool:
        """Whether the generator can use a weight between 0 and 1."""
        texts = (*self.weight, *self.env.values(), self.config)
        return not {"weight", "percent"}.isdisjoint(placeholders(texts))


@dataclass(frozen=True)
class ConfigFile:
    """A config file that is written for every test; its path is ``{config}``."""

    text: str
    """Contains ``{features}`` for the texts of all features, or ``{feature:NAME}`` for one."""
    suffix: str = ""
    """The ending of its name; by default that of the template file, if there is one."""


@dataclass(frozen=True)
class MarkedSource:
    """A generator's source from which marked lines are deleted; the copy's path is ``{source}``."""

    path: Path
    marker: str = "swarm: NAME"
    """How a line names its features: ``swarm: loops`` or ``swarm: loops, calls``. The line is
    deleted when one of them is off."""


@dataclass(frozen=True)
class GenerateSection:
    """``[generate]``: where tests come from."""

    call: CommandCall | None
    """The generator's command; None: tests come from a grammar."""
    suffix: str = ""
    """The ending of the test's file name, like ".c"."""
    seed_bits: int = 32
    """Seeds are from 1 to 2**seed_bits - 1, because many generators take 0 as the time of day."""
    separator: str = " "
    """What joins the words of ``{features}`` inside a longer word."""
    config: ConfigFile | None = None
    source: MarkedSource | None = None
    seeded: bool = True
    """False for ``seed = "none"``: the generator is not random, and needs no ``{seed}``."""
    grammar: GrammarGenerator | None = None
    """The generator of a grammar, instead of a command; `start`, `depth` and `length` set it up."""


@dataclass(frozen=True)
class StepSection:
    """``[[steps]]``: a command that is run on the test."""

    name: str
    call: CommandCall
    needs: tuple[str, ...] = ()
    """Steps that must succeed; otherwise this step is skipped."""
    on_crash: str = "fail"
    """What it means if a signal ends the step: "fail", "ignore" or "invalid"."""
    on_exit: str = "fail"
    """What an unexpected exit status means."""
    on_timeout: str = "fail"
    """What a timeout means."""
    cover: str = ""
    """How to collect coverage; empty: not at all. ``true`` in the file is "auto"."""
    sources: tuple[str, ...] | None = None
    """The files, directories or patterns whose lines are targets."""

    @property
    def may_invalidate(self) -> bool:
        """Whether the step can make a test invalid."""
        return "invalid" in (self.on_crash, self.on_exit, self.on_timeout)


@dataclass(frozen=True)
class Pattern:
    """A regular expression that recognises a fault in a step's output."""

    name: str
    regex: re.Pattern[str]
    """The signature consists of its named groups; without any, of the whole match."""
    steps: tuple[str, ...] = ()
    """The steps whose output is searched; empty: all steps."""


@dataclass(frozen=True)
class OracleSection:
    """``[oracle]``: what is a failure, besides what each step says itself."""

    patterns: tuple[Pattern, ...] = ()
    recognise: tuple[str, ...] = ()
    """The names of built-in recognisers of crash messages."""
    differential: tuple[tuple[str, ...], ...] = ()
    """Groups of steps whose output and exit status must agree."""
    python: str = ""
    """The user's own oracle: ``file.py:function``, ``module:Class``, or the name of an entry point
    in the group ``swarmtest.oracles``. See `oracles.Oracle`."""


@dataclass(frozen=True)
class ReduceSection:
    """``[reduce]``: the external reducer that runs after our own reduction."""

    external: str = "none"
    """"cvise" or "creduce"; "auto": the one that is installed, for C and C++."""
    command: tuple[str, ...] = ()
    """Another reducer: words with ``{script}`` (exits with 0 if the file in its directory is still
    interesting) and ``{test}`` (the file, which the reducer overwrites)."""
    seconds: float = 120.0
    """How long the external reducer may take."""


@dataclass(frozen=True)
class MutateSection:
    """``[mutate]``: how the program and its mutants are built."""

    build: str = ""
    """A shell line to run in a copy of the TOML file's directory."""
    files: tuple[str, ...] = ()
    """The C files to mutate by default: paths or patterns, relative to that directory."""
    seconds: float = 600.0
    """How long a build may take."""


@dataclass(frozen=True)
class Specification:
    """The contents of a whole TOML file."""

    path: Path
    description: str
    generate: GenerateSection
    forms: tuple[FeatureForm, ...]
    space: Space
    steps: tuple[StepSection, ...]
    oracle: OracleSection
    reduce: ReduceSection
    mutate: MutateSection = MutateSection()
    """How mutants are built; without a build command, the subject has no mutants."""
    build: Build | None = None
    """``[build]``: how the program is built. The command runs in the directory of the TOML file, if
    the output is missing, or a source is not as it was built."""

    @property
    def here(self) -> str:
        """The absolute path of the file's directory."""
        return str(self.path.resolve().parent)

    @property
    def weighted(self) -> bool:
        """Whether every feature that can be off can also have a weight between 0 and 1."""
        if self.generate.grammar is not None:
            return True
        mandatory = {feature.name for feature in self.space.features if feature.mandatory}
        free = [form for form in self.forms if form.name not in mandatory]
        return bool(free) and all(form.weighted for form in free)
