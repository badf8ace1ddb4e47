"""From a configuration and a seed to a test, by running the generator's command."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.processes.commands import OUTPUT_LIMIT, Ended
from swarmtest.processes.scratch import Scratch, empty
from swarmtest.subjects.command.specification import Call, FeatureForm, MarkedSource, Specification
from swarmtest.subjects.command.steps import Caller, CannotStart, how_it_ended, said_by
from swarmtest.subjects.command.toml_reader import Values, filled, placeholders

if TYPE_CHECKING:
    from swarmtest.subjects.grammar.generator import GrammarGenerator


# -------------------------------------------------------------------------------------------------
# Features of a generator by deletion: lines of its source that belong to features that are off.

_NAMES = r"(?P<names>[\w.+-]+(?:\s*,\s*[\w.+-]+)*)"


def marker_pattern(marker: str) -> re.Pattern[str]:
    """The regular expression for a marker, in which NAME stands for names of features.

    >>> marker_pattern("// swarm: NAME").search("x(); // swarm: loops, calls")["names"]
    'loops, calls'
    """
    before, _, after = marker.partition("NAME")
    return re.compile(re.escape(before) + _NAMES + re.escape(after))


def marked_names(text: str, marker: str) -> list[str]:
    """The features that markers in a source name, in order of appearance.

    >>> marked_names("a # swarm: x\\nb # swarm: y, x\\n", "# swarm: NAME")
    ['x', 'y']
    """
    found = marker_pattern(marker).finditer(text)
    return list(dict.fromkeys(name for one in found for name in _split(one["names"])))


class SourceLines:
    """A generator's source, and which features each of its lines needs."""

    def __init__(self, source: MarkedSource, forms: Iterable[FeatureForm]) -> None:
        text = source.path.read_text(errors="surrogateescape")
        pattern = marker_pattern(source.marker)
        by_regex = [(form.name, form.lines) for form in forms if form.lines is not None]
        self.lines: list[tuple[str, frozenset[str]]] = []
        for line in text.splitlines(keepends=True):
            marked = pattern.search(line)
            needs = set(_split(marked["names"])) if marked else set()
            needs |= {name for name, regex in by_regex if regex.search(line)}
            self.lines.append((line, frozenset(needs)))
        self.used = frozenset().union(*(needs for _, needs in self.lines))
        """The features that some line needs."""
        self._without = lru_cache(maxsize=64)(self._text)

    def text(self, included: Collection[str]) -> str:
        """The source with only the lines whose features are all included."""
        return self._without(frozenset(included))

    def _text(self, included: frozenset[str]) -> str:
        return "".join(line for line, needs in self.lines if needs <= included)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]


# -------------------------------------------------------------------------------------------------

_LARGEST = 64 << 20
"""Bytes of a test: it is kept in memory, and in the store if it fails."""


@dataclass(frozen=True)
class Made:
    """What a generator gave: a test's content, or why there is none."""

    content: bytes = b""
    why_not: str = ""
    cpu_seconds: float = 0.0
    tree: Any = None
    """The derivation, of a grammar's test."""


class Generator(Protocol):
    """Makes tests."""

    def make(self, configuration: Configuration, seed: int) -> Made:
        """The test of a configuration and a seed, always the same."""


class CommandGenerator:
    """Makes tests by running a command."""

    def __init__(self, spec: Specification, scratch: Scratch, caller: Caller) -> None:
        call = spec.generate.call
        assert call is not None
        self._call: Call = call
        self._spec = spec
        self._scratch = scratch
        self._caller = caller
        self._file = f"test{spec.generate.suffix}"
        self._prints = "test" not in placeholders(_texts(spec, call))
        source = spec.generate.source
        self._source = SourceLines(source, spec.forms) if source else None
        self._most = (1 << spec.generate.seed_bits) - 1

    def make(self, configuration: Configuration, seed: int) -> Made:
        """Run the generator once."""
        directory = self._scratch.fresh("generate")
        try:
            values, env = self._values(configuration, seed, directory)
            separator = self._spec.generate.separator
            ended = self._caller.run(self._call, directory, values, env=env, separator=separator)
            return self._made(ended, directory)
        except CannotStart as error:
            return Made(why_not=f"the generator: {error}")
        finally:
            empty(directory)

    def _made(self, ended: Ended, directory: Path) -> Made:
        content, why = b"", self._why_not(ended)
        if not why:
            content, why = self._printed(ended) if self._prints else _read(directory / self._file)
        if not why and not content.strip():
            where = "printed" if self._prints else "wrote"
            why = f"the generator {where} an empty test{self._says(ended)}"
        return Made(b"" if why else content, why, ended.cpu_seconds)

    def _printed(self, ended: Ended) -> tuple[bytes, str]:
        if len(ended.stdout) >= OUTPUT_LIMIT:
            return b"", "the generator printed a MiB or more: have it write to {test} instead"
        return ended.stdout, ""

    def _why_not(self, ended: Ended) -> str:
        if ended.timed_out:
            return f"the generator took longer than {self._call.timeout:g} s"
        expect = self._call.expect
        if ended.signal or (expect and os.WEXITSTATUS(ended.status) not in expect):
            return f"the generator ended with {how_it_ended(ended)}{self._says(ended)}"
        return ""

    def _says(self, ended: Ended) -> str:
        """The generator's own words; several printed lines are the beginning of a test."""
        said = said_by(ended.stderr)
        if not said and not (self._prints and ended.stdout.count(b"\n") > 1):
            said = said_by(ended.stdout)
        return said

    def _values(
        self, configuration: Configuration, seed: int, directory: Path
    ) -> tuple[Values, dict[str, str]]:
        """What the placeholders stand for, and the features' environment variables."""
        values: dict[str, str | tuple[str, ...]] = dict(
            self._caller.places(self._call, directory, self._file)
        )
        values["seed"] = str(1 + seed % self._most)
        values |= {f"setting:{n}": setting_text(v) for n, v in configuration.settings.items()}
        common: Values = dict(values)
        env: dict[str, str] = {}
        everything: list[str] = []
        for form, weight in zip(self._spec.forms, configuration.weights, strict=True):
            known = {**common, **_weight(weight)}
            words = words_of(form, weight, known)
            values[f"feature:{form.name}"] = tuple(words)
            everything += words
            variables = form.env if weight else form.env_off
            env |= {name: filled(text, known) for name, text in variables.items()}
        values["features"] = tuple(everything)
        self._write_files(configuration, values, directory)
        return values, env

    def _write_files(
        self,
        configuration: Configuration,
        values: dict[str, str | tuple[str, ...]],
        directory: Path,
    ) -> None:
        config, source = self._spec.generate.config, self._spec.generate.source
        if config is not None:
            path = directory / f"config{config.suffix}"
            path.write_text(filled(config.text, self._config_values(configuration, values)))
            values["config"] = str(path)
        if source is not None and self._source is not None:
            path = directory / source.path.name
            text = self._source.text(configuration.included)
            path.write_text(text, errors="surrogateescape")
            values["source"] = str(path)

    def _config_values(self, configuration: Configuration, values: Values) -> Values:
        """In a config file a feature stands for its text there, not for its words."""
        weights = zip(self._spec.forms, configuration.weights, strict=True)
        texts = {
            form.name: filled(
                form.config if weight else form.config_off, {**values, **_weight(weight)}
            )
            for form, weight in weights
        }
        lines = "\n".join(text for text in texts.values() if text)
        own = {f"feature:{name}": text for name, text in texts.items()}
        return {**values, **own, "features": lines}


def _texts(spec: Specification, call: Call) -> list[str]:
    """Where the generator may be told of the file that it has to write."""
    forms = [(*form.on, *form.off, *form.weight, *form.env.values()) for form in spec.forms]
    config = [spec.generate.config.text] if spec.generate.config else []
    return [*call.words, *call.env.values(), *config, *(text for form in forms for text in form)]


def words_of(form: FeatureForm, weight: float, values: Values | None = None) -> list[str]:
    """The words that a feature adds at a weight.

    >>> words_of(FeatureForm("loops", off=("--no-loops",)), 0.0)
    ['--no-loops']
    >>> words_of(FeatureForm("loops", weight=("--loops={percent}",)), 0.25)
    ['--loops=25']
    """
    if 0.0 < weight < 1.0 and not form.weighted:
        raise UserError(
            f"feature {form.name!r} is a switch, a weight of {weight:.3g} means nothing: use a "
            "strategy that gives 0 or 1, like coin, or give it a `weight`"
        )
    words = form.on if weight else form.off
    if form.weight and (0.0 < weight < 1.0 or not words):
        words = form.weight
    known = values or _weight(weight)
    return [filled(word, known) for word in words]


def _weight(weight: float) -> dict[str, str]:
    percent = max(1, round(100 * weight)) if weight else 0
    return {"weight": f"{weight:.6g}", "percent": str(percent)}


def setting_text(value: object) -> str:
    """A setting's value as a word."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(path: Path) -> tuple[bytes, str]:
    """What a generator wrote, or why that is no test: a pipe or a device would never end."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return b"", "the generator made a directory, pipe or device instead of a file"
        if found.st_size > _LARGEST:
            size = f"{found.st_size >> 20:,} MiB"
            return b"", f"the generator wrote {size}: a test has {_LARGEST >> 20} MiB at most"
        return path.read_bytes(), ""
    except OSError:
        return b"", ""


# -------------------------------------------------------------------------------------------------
# Tests that come from a grammar: made in this process, and reduced by subtrees.


class GrammarTests:
    """Makes tests with a grammar's generator."""

    def __init__(self, grammar: GrammarGenerator) -> None:
        self._grammar = grammar

    def make(self, configuration: Configuration, seed: int) -> Made:
        """The text of a tree; a configuration that leaves no text to make is an invalid test."""
        names = configuration.space.feature_names
        try:
            tree = self._grammar.generate(
                dict(zip(names, configuration.weights, strict=True)), seed
            )
        except UserError as error:
            return Made(why_not=f"the grammar: {error}")
        return Made(self._grammar.text(tree).encode(), tree=tree)
