"""Tests as files for other tools: a corpus directory as fuzzers use it, and a directory of crashes.

Only the data of tests is read, so this is safe for a store that somebody else has written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.command.test import FORMAT as COMMAND
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.generated import FORMAT as GENERATED
from swarmtest.subjects.generated import content_of, input_of


def input_of_test(test: Any) -> bytes:
    """Return a stored test as the program under test gets it.

    >>> input_of_test({"format": GENERATED, "steps": ["push 1", "pop"]})
    b'push 1\\npop\\n'
    """
    form = test.get("format") if isinstance(test, Mapping) else None
    if form == GENERATED:
        return input_of(content_of(test))
    if form == COMMAND:
        return CommandTest.from_json(test).content
    raise UserError(
        "the test is a series of calls, not one input for a program: `swarmtest replay --save` "
        "writes it as code"
    )


def add_to_corpus(directory: str | Path, tests: Iterable[Any]) -> int:
    """Write tests into a directory, each named by its content; return how many are new.

    An input that is there already is left as it is, as libFuzzer does.
    """
    place = prepared_directory(directory)
    new = 0
    for content in {input_of_test(test): None for test in tests}:
        file = place / hashlib.sha1(content, usedforsecurity=False).hexdigest()
        if not file.exists():
            file.write_bytes(content)
            new += 1
    return new


def prepared_directory(directory: str | Path) -> Path:
    """Return a directory, which is made if there is none."""
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the directory {place}: {error.strerror}") from None
    return place
