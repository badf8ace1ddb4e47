"""Placeholders in the words of commands: ``{seed}``, ``{test}``, ``{setting:level}``.

A word that is a placeholder for several words (``{features}``) alone becomes these words; inside a
longer word they are joined. ``{{seed}}`` is the text ``{seed}`` itself. Other braces are text.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

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
