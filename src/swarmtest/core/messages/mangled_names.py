"""Read the mangled C++ names of functions (Itanium C++ ABI).

Only the qualified name is read, without parameters and template arguments, because that is what a
signature shows. So a stack printed without symbols gives nearly the same signature as one with
them.
"""

from __future__ import annotations

import re

_LENGTH = re.compile(r"\d+")
_SPECIAL_PREFIX = re.compile(r"_ZT(?:hn?\d+|vn?\d+_n?\d+)_")
"""The prefix of a function that only adjusts `this` and then jumps to another function."""
_SUBSTITUTION = re.compile(r"S(?:[tabsiod]|[0-9A-Z]*_)|T[0-9A-Z]*_|A\d*_|_\d|__\d+_|D[^tT]")
"""Parts of types that are neither one letter nor nested: `std`, repeated types, array sizes."""
_NESTED = re.compile(r"D[tT]|Ul|[INXJFZ]")
"""What is closed by an ``E``."""
_KNOWN = {
    "St": ("std",),
    "Sa": ("std", "allocator"),
    "Sb": ("std", "basic_string"),
    "Ss": ("std", "basic_string"),
    "Si": ("std", "basic_istream"),
    "So": ("std", "basic_ostream"),
    "Sd": ("std", "basic_iostream"),
}
"""The ABI's abbreviations of names in `std`."""
_STRUCTOR = re.compile(r"[CD][0-5]")
_LAMBDA_NUMBER = re.compile(r"\d*_")


def function_name(symbol: str) -> str | None:
    """Return the qualified name of a mangled function, or the symbol itself if it is not mangled.

    Return None if the name uses something that is not read here.

    >>> function_name("_ZN5clang6Parser14ParseStatementEPNS_14SourceLocationE")
    'clang::Parser::ParseStatement'
    >>> function_name("_ZNSt6vectorIiSaIiEE9push_backEOi"), function_name("main")
    ('std::vector::push_back', 'main')
    """
    symbol = _SPECIAL_PREFIX.sub("_Z", symbol, count=1)
    if not symbol.startswith("_Z"):
        return symbol
    try:
        return "::".join(_NameReader(symbol).function()) or None
    except (IndexError, ValueError):
        return None


class _NameReader:
    """A reader of one mangled name, from left to right; running over its end is an IndexError."""

    def __init__(self, symbol: str) -> None:
        self._text = symbol
        self._at = len("_Z")

    def function(self) -> list[str]:
        """Return the parts of the name of a function."""
        while self._accept("Z"):
            pass  # something inside a function is named after that function
        if self._accept("N"):
            return self._nested_name()
        parts = ["std"] if self._accept("St") else []
        self._accept("L")
        parts += self._part()
        if self._text.startswith("B", self._at):
            self._tag(parts)
        return parts

    def _nested_name(self) -> list[str]:
        while self._text[self._at] in "rVKRO":
            self._at += 1
        parts: list[str] = []
        while not self._accept("E"):
            parts += self._nested_part(parts)
        return parts

    def _nested_part(self, parts: list[str]) -> list[str]:
        if self._accept("I"):
            self._skip_to_end()
            return []
        if known := _KNOWN.get(self._text[self._at : self._at + 2]):
            self._at += 2
            return list(known)
        if structor := _STRUCTOR.match(self._text, self._at):
            self._at = structor.end()
            own = parts[-1].split("[")[0]
            return [f"~{own}" if structor[0][0] == "D" else own]
        if self._text.startswith("B", self._at):
            self._tag(parts)
            return []
        self._accept("L")
        return self._part()

    def _part(self) -> list[str]:
        if self._text[self._at].isdigit():
            name = self._identifier()
            return [] if name.startswith("_GLOBAL__N") else [name]
        code = self._text[self._at : self._at + 2]
        if not (code.isalpha() and code[0].islower()):
            raise ValueError(code)
        self._at += len(code)
        if code == "cv":
            self._skip_one()
        return ["operator"]

    def _tag(self, parts: list[str]) -> None:
        """Append an ABI tag to the last part, as demanglers write it."""
        self._accept("B")
        parts[-1] += f"[abi:{self._identifier()}]"

    def _identifier(self) -> str:
        length = _LENGTH.match(self._text, self._at)
        if length is None:
            raise ValueError(self._text[self._at :])
        self._at = length.end() + int(length[0])
        if self._at > len(self._text):
            raise IndexError
        return self._text[length.end() : self._at]

    def _skip_to_end(self) -> None:
        while not self._accept("E"):
            self._skip_one()

    def _skip_one(self) -> None:
        """Skip a type, a template argument, or one letter of either."""
        if self._text[self._at].isdigit():
            self._identifier()
        elif self._accept("L"):
            self._skip_literal()
        elif match := _SUBSTITUTION.match(self._text, self._at):
            self._at = match.end()
        elif match := _NESTED.match(self._text, self._at):
            self._at = match.end()
            self._skip_to_end()
            if match[0] == "Ul" and (number := _LAMBDA_NUMBER.match(self._text, self._at)):
                self._at = number.end()
        else:
            self._at += 1

    def _skip_literal(self) -> None:
        if self._accept("_Z"):
            self._skip_to_end()
            return
        self._skip_one()
        self._at = self._text.index("E", self._at) + 1

    def _accept(self, prefix: str) -> bool:
        """Skip a prefix if it comes next, and return whether it did."""
        if self._at >= len(self._text):
            raise IndexError
        if not self._text.startswith(prefix, self._at):
            return False
        self._at += len(prefix)
        return True
