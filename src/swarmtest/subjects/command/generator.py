"""Generate a test from a configuration and a seed, with a command or with a grammar.

`CommandGenerator` runs the generator's command in an empty directory. Features reach the command
as words, environment variables, texts in a config file, or lines of the generator's own source that
are deleted when the feature is off (`SourceLines`). `GrammarTests` makes tests in this process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.processes.commands import OUTPUT_LIMIT, ProcessEnd
from swarmtest.processes.kills import FEWEST_KILLS, run_until_not_killed
from swarmtest.processes.scratch import Scratch, empty
from swarmtest.subjects.command.specification import (
    CommandCall,
    FeatureForm,
    MarkedSource,
    Specification,
)
from swarmtest.subjects.command.step_runner import CannotStart, CommandRunner, how_it_ended, said_by
from swarmtest.subjects.command.toml_reader import Values, filled, placeholders, setting_text

if TYPE_CHECKING:
    from swarmtest.subjects.grammar.generator import GrammarGenerator


_LARGEST = 64 << 20
"""The largest test in bytes: it is kept in memory, and in the store if it fails."""


@dataclass(frozen=True)
class GeneratorOutput:
    """The output of a generator: the content of a test, or the reason why there is none."""

    content: bytes = b""
    why_not: str = ""
    cpu_seconds: float = 0.0
    tree: Any = None
    """The derivation tree of a test that comes from a grammar."""
    killed: bool = False
    """Whether the generator was killed from outside, so that it ran again."""


class TestGenerator(Protocol):
    """Anything that generates tests."""

    def make(self, configuration: Configuration, seed: int) -> GeneratorOutput:
        """Return the test of a configuration and a seed: the same test at every call."""


class CommandGenerator:
    """A generator that runs a command."""

    def __init__(self, spec: Specification, scratch: Scratch, caller: CommandRunner) -> None:
        call = spec.generate.call
        assert call is not None
        self._call: CommandCall = call
        self._spec = spec
        self._scratch = scratch
        self._caller = caller
        self._file = f"test{spec.generate.suffix}"
        self._prints = "test" not in placeholders(_texts_with_placeholders(spec, call))
        source = spec.generate.source
        self._source = SourceLines(source, spec.forms) if source else None
        self._seeds = (1 << spec.generate.seed_bits) - 1

    def make(self, configuration: Configuration, seed: int) -> GeneratorOutput:
        """Run the generator's command; again, if it was killed from outside."""
        (_, output), killed = run_until_not_killed(
            lambda: self._run_once(configuration, seed),
            lambda ran: ran[0],
            (FEWEST_KILLS - 1) * self._call.timeout,
        )
        return replace(output, killed=True) if killed else output

    def _run_once(self, configuration: Configuration, seed: int) -> tuple[bool, GeneratorOutput]:
        """Return whether the command was killed, perhaps from outside, and what it made."""
        directory = self._scratch.fresh("generate")
        try:
            values, env = self._values(configuration, seed, directory)
            separator = self._spec.generate.separator
            ended = self._caller.run(self._call, directory, values, env=env, separator=separator)
            return ended.perhaps_from_outside, self._made(ended, directory)
        except CannotStart as error:
            return False, GeneratorOutput(why_not=f"the generator: {error}")
        finally:
            empty(directory)

    def _made(self, ended: ProcessEnd, directory: Path) -> GeneratorOutput:
        content, why = b"", self._why_not(ended)
        if not why:
            file = directory / self._file
            content, why = self._printed(ended) if self._prints else _read_test(file)
        if not why and not content.strip():
            where = "printed" if self._prints else "wrote"
            why = f"the generator {where} an empty test{self._says(ended)}"
        return GeneratorOutput(b"" if why else content, why, ended.cpu_seconds)

    def _printed(self, ended: ProcessEnd) -> tuple[bytes, str]:
        if len(ended.stdout) >= OUTPUT_LIMIT:
            return b"", "the generator printed 1 MiB or more: let it write to {test} instead"
        return ended.stdout, ""

    def _why_not(self, ended: ProcessEnd) -> str:
        if ended.timed_out:
            return f"the generator took longer than {self._call.timeout:g} s"
        expect = self._call.expect
        if ended.signal or (expect and os.WEXITSTATUS(ended.status) not in expect):
            return f"the generator ended with {how_it_ended(ended)}{self._says(ended)}"
        return ""

    def _says(self, ended: ProcessEnd) -> str:
        """Return the generator's own message, as the end of ours.

        The message may be on standard output. But several lines there, from a generator that prints
        its tests, are the beginning of a test.
        """
        message = said_by(ended.stderr)
        if not message and not (self._prints and ended.stdout.count(b"\n") > 1):
            message = said_by(ended.stdout)
        return message

    def _values(
        self, configuration: Configuration, seed: int, directory: Path
    ) -> tuple[Values, dict[str, str]]:
        """Return the values of the placeholders, and the features' environment variables."""
        values: dict[str, str | tuple[str, ...]] = dict(
            self._caller.places(self._call, directory, self._file)
        )
        values["seed"] = str(1 + seed % self._seeds)
        values |= {f"setting:{n}": setting_text(v) for n, v in configuration.settings.items()}
        common: Values = dict(values)
        env: dict[str, str] = {}
        all_words: list[str] = []
        for form, weight in zip(self._spec.forms, configuration.weights, strict=True):
            form_values = {**common, **_weight_values(weight)}
            words = words_of(form, weight, form_values)
            values[f"feature:{form.name}"] = tuple(words)
            all_words += words
            variables = form.env if weight else form.env_off
            env |= {name: filled(text, form_values) for name, text in variables.items()}
        values["features"] = tuple(all_words)
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
        """Return the values for the config file, where a feature stands for its `config` text."""
        weights = zip(self._spec.forms, configuration.weights, strict=True)
        texts = {
            form.name: filled(
                form.config if weight else form.config_off, {**values, **_weight_values(weight)}
            )
            for form, weight in weights
        }
        lines = "\n".join(text for text in texts.values() if text)
        feature_texts = {f"feature:{name}": text for name, text in texts.items()}
        return {**values, **feature_texts, "features": lines}


def _texts_with_placeholders(spec: Specification, call: CommandCall) -> list[str]:
    """Return the texts in which ``{test}`` may name the file that the generator has to write."""
    forms = [(*form.on, *form.off, *form.weight, *form.env.values()) for form in spec.forms]
    config = [spec.generate.config.text] if spec.generate.config else []
    return [*call.words, *call.env.values(), *config, *(text for form in forms for text in form)]


def words_of(form: FeatureForm, weight: float, values: Values | None = None) -> list[str]:
    """Return the words that a feature adds at a weight.

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
    values = values or _weight_values(weight)
    return [filled(word, values) for word in words]


def _weight_values(weight: float) -> dict[str, str]:
    percent = max(1, round(100 * weight)) if weight else 0
    return {"weight": f"{weight:.6g}", "percent": str(percent)}


def _read_test(path: Path) -> tuple[bytes, str]:
    """Return the file that a generator wrote, or the reason why it is not a test.

    Only a regular file is read: reading a pipe or a device might never end. A missing file counts
    as an empty test.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return b"", "the generator created a directory, pipe or device instead of a file"
        if status.st_size > _LARGEST:
            size = f"{status.st_size >> 20:,} MiB"
            return b"", f"the generator wrote {size}: a test has {_LARGEST >> 20} MiB at most"
        return path.read_bytes(), ""
    except OSError:
        return b"", ""


class GrammarTests:
    """A generator that derives tests from a grammar, in this process."""

    def __init__(self, grammar: GrammarGenerator) -> None:
        self._grammar = grammar

    def make(self, configuration: Configuration, seed: int) -> GeneratorOutput:
        """Return the text of a random tree; if the configuration allows none, say why."""
        names = configuration.space.feature_names
        try:
            tree = self._grammar.generate(
                dict(zip(names, configuration.weights, strict=True)), seed
            )
        except UserError as error:
            return GeneratorOutput(why_not=f"the grammar: {error}")
        return GeneratorOutput(self._grammar.text(tree).encode(), tree=tree)


# Features by deletion: lines of the generator's source that are marked with features.

_NAMES = r"(?P<names>[\w.+-]+(?:\s*,\s*[\w.+-]+)*)"


def marker_pattern(marker: str) -> re.Pattern[str]:
    """Return the regular expression for a marker, in which NAME stands for feature names.

    >>> marker_pattern("// swarm: NAME").search("x(); // swarm: loops, calls")["names"]
    'loops, calls'
    """
    before, _, after = marker.partition("NAME")
    return re.compile(re.escape(before) + _NAMES + re.escape(after))


def marked_names(text: str, marker: str) -> list[str]:
    """Return the features that the markers in a source name, in order of appearance.

    >>> marked_names("a # swarm: x\\nb # swarm: y, x\\n", "# swarm: NAME")
    ['x', 'y']
    """
    matches = marker_pattern(marker).finditer(text)
    return list(dict.fromkeys(name for match in matches for name in _split(match["names"])))


class SourceLines:
    """A generator's source, with the features that each of its lines needs."""

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
        self._cached_text = lru_cache(maxsize=64)(self._text)

    def text(self, included: Collection[str]) -> str:
        """Return the source with only the lines whose features are all included."""
        return self._cached_text(frozenset(included))

    def _text(self, included: frozenset[str]) -> str:
        return "".join(line for line, needs in self.lines if needs <= included)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",")]
