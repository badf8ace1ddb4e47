"""The subject that a store or a saved test names.

Whoever wrote it chose the name, and running a test calls what is named with any arguments. For the
programs of the user that is what a test is for. But with a class of Python's library, such as
`code:InteractiveInterpreter`, a test could run any code, and a comparison of releases would install
any package. Those are loaded only if the user names them, or trusts the store.
"""

from __future__ import annotations

import shlex
import sys
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.trust import is_trusted
from swarmtest.languages.user_objects import split_reference
from swarmtest.subjects.loading import LOADED, SubjectReference

_HARMLESS = frozenset(
    {
        *("array", "bisect", "builtins", "calendar", "collections", "configparser", "contextvars"),
        *("copy", "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "graphlib"),
        *("heapq", "html", "ipaddress", "itertools", "json", "math", "numbers", "operator"),
        *("queue", "random", "re", "shlex", "statistics", "string", "struct", "textwrap"),
        *("unicodedata", "uuid", "weakref", "zlib", "zoneinfo"),
    }
)
"""Modules of the standard library whose classes compute: they run no code and write no files."""


def stored_reference(data: dict[str, Any]) -> SubjectReference:
    """Return the reference that a store or a saved test has, unless loading it may do harm.

    >>> stored_reference({"text": "collections:UserDict", "api": True}).text
    'collections:UserDict'
    >>> stored_reference({"text": "code:InteractiveInterpreter", "api": True})
    Traceback (most recent call last):
    ...
    swarmtest.UserError: this is a test of code:InteractiveInterpreter, which can do anything: run \
it yourself with `swarmtest run`, or add --trust if you know who wrote this
    """
    reference = SubjectReference.from_json(data)
    # What is loaded was named by the user: `run` goes on to reduce and explain what it found.
    if not is_trusted() and reference.text not in LOADED:
        refuse_harmful(reference.text)
    return reference


def refuse_harmful(text: str) -> None:
    """Refuse a subject that a user has to name: a class of Python's library, a new release."""
    words = text.split(" ")
    named = {"diff": words[3:], "race": words[-1:]}.get(words[0], [text])
    if words[0] == "diff":
        from swarmtest.subjects.oracles.releases import is_installed

        missing = [word for word in words[1:3] if not is_installed(word)]
        if missing:
            raise UserError(
                f"this is a test of {missing[0]}, which is not installed for comparisons here: run "
                f"`swarmtest {shlex.join(words)}` first, or add --trust if you know who wrote this"
            )
    for word in named:
        where, _ = split_reference(word)
        top = where.partition(".")[0]
        is_file = where.endswith((".py", ".toml"))
        if not is_file and top in sys.stdlib_module_names and where not in _HARMLESS:
            raise UserError(
                f"this is a test of {word}, which can do anything: run it yourself with `swarmtest "
                "run`, or add --trust if you know who wrote this"
            )
