"""Read a TOML file key by key, so that each mistake is reported with its file, line and key.

A `TomlSection` remembers the keys that were asked for. At the end, any other key is unknown, and
the keys that were asked for are the candidates for "did you mean". The second part of this module
handles the placeholders in the words of commands, like ``{seed}``.
"""

from __future__ import annotations

import difflib
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from swarmtest.core.errors import UserError, did_you_mean

Place: TypeAlias = tuple[str | int, ...]
"""The keys from the top of the file to a value; a number is a position in a list of tables."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMG])(?:I?B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST = 1e6
"""The largest number that makes sense here: eleven days, in seconds."""
_OPERATORS = "|&;<>"
_VARIABLE = re.compile(r"\$\{?[A-Z_]+\}?(/.*)?|~(/.*)?")


class TomlFile:
    """A TOML file: its data, and its text to find the line of a key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{path} is not UTF-8 text, so it is not TOML") from None
        except OSError as error:
            near = nearest_file(path, "*.toml")
            raise UserError(f"cannot read {path}: {error.strerror}{near}") from None
        try:
            self.data: dict[str, Any] = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise UserError(_syntax_error(path, self.text, str(error))) from None
        except RecursionError:
            raise UserError(f"{path} is nested too deeply") from None

    def top(self) -> TomlSection:
        """Return the whole file as a section."""
        return TomlSection(self, (), self.data)

    def error(self, place: Place, message: str) -> UserError:
        """Return an error about a key, with its line if that can be found."""
        line = line_of(self.text, place)
        return UserError(f"{self.path}:{line}: {message}" if line else f"{self.path}: {message}")


class TomlSection:
    """A table of a TOML file that is read key by key; `close` raises if a key was never read."""

    def __init__(self, file: TomlFile, place: Place, data: Mapping[str, Any]) -> None:
        self.file = file
        self.place = place
        self._data = data
        self._asked: set[str] = set()

    @property
    def title(self) -> str:
        """The header of this table, as the file writes it."""
        if not self.place:
            return ""
        names = ".".join(str(key) for key in self.place if isinstance(key, str))
        listed = isinstance(self.place[-1], int)
        return f"[[{names}]]" if listed else f"[{names}]"

    def __contains__(self, key: str) -> bool:
        self._asked.add(key)
        return key in self._data

    def names(self) -> list[str]:
        """Return the keys of this table, in the order of the file."""
        return list(self._data)

    def raw(self, key: str) -> Any:
        """Return the value of a key as `tomllib` read it; None if it is absent."""
        self._asked.add(key)
        return self._data.get(key)

    def error(self, key: str, message: str) -> UserError:
        """Return an error about one of its keys."""
        return self.file.error((*self.place, key), f"{self.title} {key}: {message}".lstrip())

    def missing(self, key: str, message: str) -> UserError:
        """Return an error about a missing key, or about an unknown key with a similar name."""
        left = [name for name in self._data if name not in self._asked]
        near = difflib.get_close_matches(key, left, n=1)
        return self._unknown(near[0]) if near else self.error(key, f"missing: {message}")

    def text(self, key: str, default: str = "") -> str:
        """Return a text."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(key, f"a text in quotes, not {value!r}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, f"true or false, not {value!r}")
        return value

    def number(self, key: str, default: float, *, least: float = 0.0) -> float:
        """Return a number that is at least `least`."""
        value = self.raw(key)
        if value is None:
            return default
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not least <= value <= _MOST:
            raise self.error(key, f"a number from {least:g} to {_MOST:,.0f}, not {value!r}")
        return float(value)

    def integer(self, key: str, default: int, *, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(key, f"a whole number from {low} to {high}, not {value!r}")
        return value

    def size(self, key: str) -> int:
        """Return a number of bytes, given as a number or a text like "512MB"; 0 if absent."""
        value = self.raw(key)
        match = _SIZE.fullmatch(str(value if value is not None else 0).strip())
        if match is None or isinstance(value, bool):
            raise self.error(key, f'a number of bytes, or a text like "512MB", not {value!r}')
        return int(float(match[1]) * _UNITS[(match[2] or "").upper()])

    def one_of(self, key: str, choices: Sequence[str], default: str) -> str:
        """Return one of a few words."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str) or value not in choices:
            shown = ", ".join(f'"{choice}"' for choice in choices)
            raise self.error(key, f"one of {shown}, not {value!r}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; a single text counts as a list of one."""
        value = self.raw(key)
        if value is None:
            return ()
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self.error(key, f"a list of texts, not {value!r}")
        self._refuse_zeros(key, texts)
        return tuple(texts)

    def integers(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return a list of whole numbers, not empty; a single number counts as a list of one."""
        value = self.raw(key)
        if value is None:
            return default
        numbers = [value] if isinstance(value, int) else value
        good = isinstance(numbers, list) and all(type(number) is int for number in numbers)
        if not good or not numbers:
            raise self.error(key, f"a list of whole numbers, not {value!r}")
        return tuple(numbers)

    def words(self, key: str) -> tuple[str, ...]:
        """Return the words of a command, given as a list or as a text to split like a shell."""
        value = self.raw(key)
        if not isinstance(value, str):
            return self.texts(key)
        self._refuse_zeros(key, [value])
        try:
            words = tuple(shlex.split(value))
        except ValueError as error:
            raise self.error(key, f"cannot be split into words: {error}") from None
        shell = for_a_shell(value)
        if shell:
            raise self.error(
                key,
                f"no shell runs this, so {shell!r} is plain text: use `stdin`, `env` or several "
                'steps, or ["sh", "-c", "..."]; a list of words takes it as it is',
            )
        return words

    def mapping(self, key: str) -> dict[str, str]:
        """Return a table of texts, such as environment variables."""
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self.error(key, f'a table of texts, like {{ NAME = "1" }}, not {value!r}')
        for name in value:
            if not name or "=" in name:
                raise self.error(key, f"{name!r} cannot be the name of a variable")
        self._refuse_zeros(key, [*value, *value.values()])
        return dict(value)

    def pattern(self, key: str) -> re.Pattern[str] | None:
        """Return a regular expression in which ^ and $ match at every line."""
        text = self.text(key)
        if not text:
            return None
        try:
            pattern = re.compile(text, re.MULTILINE)
        except re.error as error:
            raise self.error(key, f"{text!r} is not a regular expression: {error}") from None
        if pattern.fullmatch(""):
            raise self.error(key, f"{text!r} matches the empty string, so it matches everywhere")
        return pattern

    def section(self, key: str) -> TomlSection:
        """Return a table; an empty one if it is absent."""
        value = self.raw(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            names = ".".join(map(str, (*self.place, key)))
            raise self.error(key, f"a table: write [{names}] and its keys below")
        return TomlSection(self.file, (*self.place, key), value)

    def sections(self, key: str) -> list[TomlSection]:
        """Return a list of tables."""
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
            raise self.error(key, f"a list of tables: write [[{key}]] above each")
        return [
            TomlSection(self.file, (*self.place, key, i), table) for i, table in enumerate(value)
        ]

    def close(self) -> None:
        """Raise if the table has a key that was never asked for."""
        for key in self._data:
            if key not in self._asked:
                raise self._unknown(key)

    def _unknown(self, key: str) -> UserError:
        title = self.title or "the file"
        near = did_you_mean(key, self._asked)
        return self.file.error((*self.place, key), f"{title} has no key {key!r}{near}")

    def _refuse_zeros(self, key: str, texts: Sequence[str]) -> None:
        if any("\0" in text for text in texts):
            raise self.error(key, "has a null character, which commands and variables cannot have")


def line_of(text: str, place: Place) -> int:
    """Return the line on which a key is set or its table begins; 0 if it is not found.

    >>> line_of('[generate]\\ncommand = "x"\\n[[steps]]\\nrun = "y"\\n', ("steps", 0, "run"))
    4
    """
    table: tuple[str | int, ...] = ()
    lists: dict[tuple[str, ...], int] = {}
    best = 0
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)\s*([^\]]+?)\s*\]", line)
        if header:
            names = tuple(part.strip().strip("\"'") for part in header[2].split("."))
            if header[1] == "[[":
                lists[names] = lists.get(names, -1) + 1
                table = (*names, lists[names])
            else:
                table = names
        else:
            key = re.match(r"\s*([^=#]+?)\s*=", line)
            if key is None:
                continue
            names = tuple(part.strip().strip("\"'") for part in key[1].split("."))
            if (*table, *names) == place:
                return number
            if place[: len(table) + len(names)] == (*table, *names):
                best = number  # a table that is written in one line
            continue
        if table == place:
            return number
        if len(table) > 0 and place[: len(table)] == table:
            best = number
    return best


def _syntax_error(path: Path, text: str, message: str) -> str:
    where = re.search(r" \(at line (\d+), column (\d+)\)", message)
    if where is None:
        where = re.search(r" \(at end of document\)", message)
        line = max(1, len(text.splitlines()))
        return f"{path}:{line}: not TOML: {message.partition(' (at')[0]} (the file ends here)"
    return f"{path}:{where[1]}: not TOML: {message.partition(' (at')[0]} (column {where[2]})"


def nearest_file(path: Path, pattern: str = "*") -> str:
    """Return the end of a message about a missing file: the files with a similar name."""
    if path.exists() or not path.parent.is_dir():
        return ""
    names = [file.name for file in path.parent.glob(pattern) if file.is_file()]
    return did_you_mean(path.name, difflib.get_close_matches(path.name, names))


# Placeholders in the words of commands: ``{seed}``, ``{test}``, ``{setting:level}``.
#
# A placeholder for several words, like ``{features}``, becomes these words if it is a word by
# itself; inside a longer word they are joined. ``{{seed}}`` is the text ``{seed}``. All other
# braces are plain text.

_PLACEHOLDER = re.compile(r"\{(\{)?([a-z]+(?::[^{}]*)?)\}(?(1)\})")
_BRACES = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")

Values: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""The value of each placeholder: a text, or several words."""


def expanded(words: Iterable[str], values: Values, separator: str = " ") -> list[str]:
    """Return the words with all placeholders replaced.

    >>> expanded(["gen", "{features}", "-s{seed}"], {"features": ("-a", "-b"), "seed": "7"})
    ['gen', '-a', '-b', '-s7']
    >>> expanded(["--use={features}"], {"features": ("a", "b")}, ",")
    ['--use=a,b']
    """
    result: list[str] = []
    for word in words:
        value = values.get(word[1:-1]) if word[:1] == "{" else None
        if isinstance(value, tuple):
            result += value
        else:
            result.append(filled(word, values, separator))
    return result


def filled(text: str, values: Values, separator: str = " ") -> str:
    """Return a text with all placeholders replaced; those without a value stay unchanged.

    >>> filled("{dir}/{{dir}}", {"dir": "/tmp"})
    '/tmp/{dir}'
    """
    if "{" not in text:
        return text

    def value_of(match: re.Match[str]) -> str:
        if match[1]:  # doubled braces
            return match[0][1:-1]
        value = values.get(match[2])
        if value is None:
            return match[0]
        return value if isinstance(value, str) else separator.join(value)

    return _PLACEHOLDER.sub(value_of, text)


def look_alikes(words: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the names in braces that would be placeholders but for capitals or spaces.

    >>> look_alikes(["{Test}", "{ dir }", "{test}", "{DEPTH}"], {"test", "dir"})
    ['Test', ' dir ']
    """
    names = [match[1] for word in words for match in _BRACES.finditer(word)]
    return [name for name in names if name not in known and name.strip().lower() in known]


def placeholders(words: Sequence[str]) -> list[str]:
    """Return the placeholders in some words, without their braces.

    >>> placeholders(["gen", "--seed={seed}", "{{test}}", "{setting:level}"])
    ['seed', 'setting:level']
    """
    return [match[2] for word in words for match in _PLACEHOLDER.finditer(word) if not match[1]]


def for_a_shell(text: str) -> str:
    """Return the first part of a command that only a shell understands; empty if there is none.

    >>> for_a_shell("sort {test} 2>/dev/null"), for_a_shell("grep 'a|b' {test}")
    ('>', '')
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    tokens = list(lexer)
    for_shell = (
        token
        for token in tokens
        if (token and not token.strip(_OPERATORS)) or _VARIABLE.fullmatch(token)
    )
    return next(for_shell, "")


def setting_text(value: object) -> str:
    """Return a setting's value as a word of a command."""
    return str(value).lower() if isinstance(value, bool) else str(value)
