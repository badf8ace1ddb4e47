"""Read the parts of a signature again: of what type a fault is, and where it showed.

Signatures are text, because stores, reports and people share them. `swarmtest.core.faults` writes
those of Python exceptions; those of crashes and commands have a type and functions as well.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_FUNCTION = r"[^\W\d][\w.<>]*"
_SIGNATURE = re.compile(
    r"^(?P<label>(?:invariant|guard) [^:]*: )?"
    r"(?P<type>[^:\[]*?)"
    r"(?:: (?P<message>.*?))?"
    rf"(?: \[(?P<functions>{_FUNCTION}(?:(?: [<>] |, ){_FUNCTION})*)(?:: (?P<statement>.*))?\])?"
    r"(?: in (?P<operation>\w+))?$",
    re.DOTALL,
)


class SignatureParts(NamedTuple):
    """The parts of a signature; a part that it does not have is empty.

    >>> parts = SignatureParts.of("Full: at # of # [Stack.push: raise Full(text)] in add")
    >>> parts.type, parts.message, parts.functions, parts.statement, parts.operation
    ('Full', 'at # of #', ('Stack.push',), 'raise Full(text)', 'add')
    >>> SignatureParts.of("SIGSEGV [parse < read]").functions
    ('parse', 'read')
    >>> SignatureParts.of("timeout [run > parse]").functions
    ('run', 'parse')
    """

    label: str
    """Which invariant failed, and after what; or whose guard."""
    type: str
    message: str
    functions: tuple[str, ...]
    """The innermost first; of exceptions, only that one."""
    statement: str
    operation: str

    @classmethod
    def of(cls, signature: str) -> SignatureParts:
        """Return the parts of a signature."""
        match = _SIGNATURE.match(signature)
        if match is None:  # of a command or an oracle, which may say anything
            return cls("", signature, "", (), "", "")
        label, kind, message, functions, statement, operation = match.groups(default="")
        names = tuple(re.split(r" [<>] |, ", functions)) if functions else ()
        return cls(label, kind.strip(), message, names, statement, operation)

    @property
    def place(self) -> tuple[str, ...]:
        """What the signature says about where it showed, without the message."""
        return (self.label, self.type, *self.functions, self.statement, self.operation)


_WORD = re.compile(r"[^\W\d_]{2,}")


def is_older_form(recorded: str, shown: str) -> bool:
    """Return whether an older version of swarmtest would have given a fault a recorded signature.

    Older signatures have up to three functions and the whole message, but no statement, and no
    operation. So several faults of today may have had the same one.

    >>> is_older_form("Full: 7 of # [Stack.push < M.add]", "Full: … of … [Stack.push]")
    True
    >>> is_older_form("AssertionError [M.add]", "AssertionError [M.add: assert total > 3]")
    True
    >>> is_older_form("AssertionError [M.pop]", "AssertionError [M.add: assert total > 3]")
    False
    """
    old, new = SignatureParts.of(recorded), SignatureParts.of(shown)
    if recorded == shown or old.statement or old.operation or " after " in old.label:
        return False
    return (
        old.type == new.type
        and old.functions[:1] == new.functions[:1] != ()
        and old.label.rstrip(": ") == new.label.partition(" after ")[0].rstrip(": ")
        and set(_WORD.findall(new.message)) <= set(_WORD.findall(old.message))
    )
