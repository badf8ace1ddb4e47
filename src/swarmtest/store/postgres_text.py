"""Text in PostgreSQL, which holds every character but NUL: that one is kept as ``␀0``."""

from __future__ import annotations

from typing import Any, overload

from swarmtest.store.batch import storable

_MARK = "\u2400"
"""The symbol for NUL; itself it is kept as two of them."""


@overload
def kept(text: str) -> str: ...
@overload
def kept(text: None) -> None: ...
@overload
def kept(text: str | None) -> str | None: ...
def kept(text: str | None) -> str | None:
    """Text as PostgreSQL can hold it.

    >>> kept("one\\0two"), kept("\\ud800")
    ('one␀0two', '\\\\ud800')
    """
    if text is None:
        return None
    text = storable(text)
    if _MARK in text or "\0" in text:
        return text.replace(_MARK, 2 * _MARK).replace("\0", f"{_MARK}0")
    return text


@overload
def told(text: str) -> str: ...
@overload
def told(text: None) -> None: ...
@overload
def told(text: str | None) -> str | None: ...
def told(text: str | None) -> str | None:
    """What `kept` was given.

    >>> told(kept("one\\0two ␀0")) == "one\\0two ␀0"
    True
    """
    if text is None or is_as_given(text):
        return text
    whole = text.split(2 * _MARK)
    return _MARK.join(part.replace(f"{_MARK}0", "\0") for part in whole)


def is_as_given(text: str | None) -> bool:
    """Whether `told` would change nothing."""
    return text is None or _MARK not in text


def told_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row with all texts in it as they were given."""
    return tuple(told(value) if isinstance(value, str) else value for value in row)
