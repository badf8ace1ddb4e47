"""Reading a TOML file key by key, so that every mistake is one line with the file, line and key.

A `Section` remembers which keys it was asked for: what is left at the end is a key that nobody
knows, and those it was asked for are what might have been meant.
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

# -------------------------------------------------------------------------------------------------
# Placeholders in the words of commands: ``{seed}``, ``{test}``, ``{setting:level}``.
#
# A word that is a placeholder for several words (``{features}``) alone becomes these words; inside
# a
# longer word they are joined. ``{{seed}}`` is the text ``{seed}`` itself. Other braces are text.

_FORM = re.compile(r"\{(\{)?([a-z]+(?::[^{}]*)?)\}(?(1)\})")
_BRACES = re.compile(r"(?<!\{)\{([^{}]+)\}(?!\})")
_OPERATORS = "|&;<>"
_VARIABLE = re.compile(r"\$\{?[A-Z_]+\}?(/.*)?|~(/.*)?")

Values: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""What each placeholder stands for: a text, or words."""


def expanded(words: Iterable[str], values: Values, separator: str = " ") -> list[str]:
    """The words with all placeholders replaced.

    >>> expanded(["gen", "{features}", "-s{seed}"], {"features": ("-a", "-b"), "seed": "7"})
    ['gen', '-a', '-b', '-s7']
    >>> expanded(["--use={features}"], {"features": ("a", "b")}, ",")
    ['--use=a,b']
    """
    found: list[str] = []
    for word in words:
        value = values.get(word[1:-1]) if word[:1] == "{" else None
        if isinstance(value, tuple):
            found += value
        else:
            found.append(filled(word, values, separator))
    return found


def filled(text: str, values: Values, separator: str = " ") -> str:
    """One text with all placeholders replaced; those without a value stay as they are.

    >>> filled("{dir}/{{dir}}", {"dir": "/tmp"})
    '/tmp/{dir}'
    """
    if "{" not in text:
        return text

    def value_of(form: re.Match[str]) -> str:
        if form[1]:
            return form[0][1:-1]
        value = values.get(form[2])
        if value is None:
            return form[0]
        return value if isinstance(value, str) else separator.join(value)

    return _FORM.sub(value_of, text)


def look_alikes(words: Iterable[str], known: Collection[str]) -> list[str]:
    """What looks like a placeholder that is known, but is written with capitals or spaces.

    >>> look_alikes(["{Test}", "{ dir }", "{test}", "{DEPTH}"], {"test", "dir"})
    ['Test', ' dir ']
    """
    found = [form[1] for word in words for form in _BRACES.finditer(word)]
    return [name for name in found if name not in known and name.strip().lower() in known]


def placeholders(words: Sequence[str]) -> list[str]:
    """The placeholders that words have, without their braces.

    >>> placeholders(["gen", "--seed={seed}", "{{test}}", "{setting:level}"])
    ['seed', 'setting:level']
    """
    return [form[2] for word in words for form in _FORM.finditer(word) if not form[1]]


def for_a_shell(text: str) -> str:
    """The first thing in a command that only a shell would understand; empty if there is none.

    >>> for_a_shell("sort {test} 2>/dev/null"), for_a_shell("grep 'a|b' {test}")
    ('>', '')
    """
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    tokens = list(lexer)
    found = (
        token
        for token in tokens
        if (token and not token.strip(_OPERATORS)) or _VARIABLE.fullmatch(token)
    )
    return next(found, "")


# -------------------------------------------------------------------------------------------------

Place: TypeAlias = tuple[str | int, ...]
"""Keys from the top of the file; a number is a position in a list of tables."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMG])(?:I?B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST = 1e6
"""The largest number that is of any use here: eleven days, in seconds."""


class TomlFile:
    """A TOML file: its data, and where in its text a key is."""

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

    def top(self) -> Section:
        """The whole file as a section."""
        return Section(self, (), self.data)

    def error(self, place: Place, message: str) -> UserError:
        """A complaint about a key, with the line it is on if that can be found."""
        line = line_of(self.text, place)
        return UserError(f"{self.path}:{line}: {message}" if line else f"{self.path}: {message}")


class Section:
    """A table of a TOML file that is read key by key; `close` complains about keys left over."""

    def __init__(self, file: TomlFile, place: Place, data: Mapping[str, Any]) -> None:
        self.file = file
        self.place = place
        self._data = data
        self._asked: set[str] = set()

    @property
    def title(self) -> str:
        """How the file itself names this table."""
        if not self.place:
            return ""
        names = ".".join(str(key) for key in self.place if isinstance(key, str))
        listed = isinstance(self.place[-1], int)
        return f"[[{names}]]" if listed else f"[{names}]"

    def __contains__(self, key: str) -> bool:
        self._asked.add(key)
        return key in self._data

    def names(self) -> list[str]:
        """The keys that the file has here, in its order."""
        return list(self._data)

    def raw(self, key: str) -> Any:
        """A key's value as TOML has it; None when it is absent."""
        self._asked.add(key)
        return self._data.get(key)

    def error(self, key: str, message: str) -> UserError:
        """A complaint about one of its keys."""
        return self.file.error((*self.place, key), f"{self.title} {key}: {message}".lstrip())

    def missing(self, key: str, message: str) -> UserError:
        """A complaint about a key that has to be there; one that looks like it is named instead."""
        left = [name for name in self._data if name not in self._asked]
        near = difflib.get_close_matches(key, left, n=1)
        return self._unknown(near[0]) if near else self.error(key, f"missing: {message}")

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(key, f"a text in quotes, not {value!r}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(key, f"true or false, not {value!r}")
        return value

    def number(self, key: str, default: float, *, least: float = 0.0) -> float:
        """A number that is not below `least`."""
        value = self.raw(key)
        if value is None:
            return default
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or not least <= value <= _MOST:
            raise self.error(key, f"a number from {least:g} to {_MOST:,.0f}, not {value!r}")
        return float(value)

    def integer(self, key: str, default: int, *, low: int, high: int) -> int:
        """A whole number in a range."""
        value = self.raw(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.error(key, f"a whole number from {low} to {high}, not {value!r}")
        return value

    def size(self, key: str) -> int:
        """Bytes: a number, or a text like "512MB"; 0 when absent."""
        value = self.raw(key)
        found = _SIZE.fullmatch(str(value if value is not None else 0).strip())
        if found is None or isinstance(value, bool):
            raise self.error(key, f'a number of bytes, or a text like "512MB", not {value!r}')
        return int(float(found[1]) * _UNITS[(found[2] or "").upper()])

    def one_of(self, key: str, choices: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.raw(key)
        if value is None:
            return default
        if not isinstance(value, str) or value not in choices:
            shown = ", ".join(f'"{choice}"' for choice in choices)
            raise self.error(key, f"one of {shown}, not {value!r}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text alone is a list of one."""
        value = self.raw(key)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.error(key, f"a list of texts, not {value!r}")
        self._refuse_zeros(key, found)
        return tuple(found)

    def integers(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """A list of whole numbers, not empty; one alone is a list of one."""
        value = self.raw(key)
        if value is None:
            return default
        found = [value] if isinstance(value, int) else value
        good = isinstance(found, list) and all(type(one) is int for one in found)
        if not good or not found:
            raise self.error(key, f"a list of whole numbers, not {value!r}")
        return tuple(found)

    def words(self, key: str) -> tuple[str, ...]:
        """The words of a command: a list, or a text that is split as a shell does."""
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
        """A table of texts, as of environment variables."""
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
        """A regular expression, in which ^ and $ stand for the ends of lines."""
        text = self.text(key)
        if not text:
            return None
        try:
            pattern = re.compile(text, re.MULTILINE)
        except re.error as error:
            raise self.error(key, f"{text!r} is no regular expression: {error}") from None
        if pattern.fullmatch(""):
            raise self.error(key, f"{text!r} matches the empty text, so it is found everywhere")
        return pattern

    def section(self, key: str) -> Section:
        """A table; an empty one when it is absent."""
        value = self.raw(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            names = ".".join(str(one) for one in (*self.place, key))
            raise self.error(key, f"a table: write [{names}] and its keys below")
        return Section(self.file, (*self.place, key), value)

    def sections(self, key: str) -> list[Section]:
        """A list of tables."""
        value = self.raw(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.error(key, f"a list of tables: write [[{key}]] above each")
        return [Section(self.file, (*self.place, key, i), one) for i, one in enumerate(value)]

    def close(self) -> None:
        """Complain about a key that nobody asked for."""
        for key in self._data:
            if key not in self._asked:
                raise self._unknown(key)

    def _unknown(self, key: str) -> UserError:
        title = self.title or "the file"
        near = did_you_mean(key, self._asked)
        return self.file.error((*self.place, key), f"{title} has no key {key!r}{near}")

    def _refuse_zeros(self, key: str, texts: Sequence[str]) -> None:
        if any("\0" in text for text in texts):
            raise self.error(key, "has a zero character, which no command or variable can have")


def line_of(text: str, place: Place) -> int:
    """The line on which a key is set, or its table begins; 0 when it is not found.

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
                best = number  # a table written in one line
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
    """The tail of a message about a file that is not there: what else is called nearly so."""
    if path.exists() or not path.parent.is_dir():
        return ""
    there = [one.name for one in path.parent.glob(pattern) if one.is_file()]
    return did_you_mean(path.name, difflib.get_close_matches(path.name, there))
