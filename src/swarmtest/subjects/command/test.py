"""A test of a command subject, as a value: the file that the generator made."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from swarmtest.core.errors import UserError

FORMAT = "swarmtest command test 1"
_CONTROLS = bytes({*range(32), 127} - {*b"\t\n\r\f\v"})
"""Control characters that a terminal would act on, and that do not occur in a text."""


@dataclass(frozen=True)
class CommandTest:
    """The content of a test and where it came from; a replay uses only content and settings.

    >>> test = CommandTest("csmith.toml", b"int main;")
    >>> CommandTest.from_json(test.to_json()) == test
    True
    """

    subject: str
    content: bytes
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    features: tuple[str, ...] | None = None
    """The features that were on when it was generated."""
    tree: Any = None
    """The derivation tree, if it came from a grammar."""
    only: tuple[str, ...] = ()
    """The steps to run while it is reduced; empty: all steps."""

    @property
    def text(self) -> str:
        """The content as text, for people and patterns; bytes that are not UTF-8 are replaced."""
        return self.content.decode(errors="replace")

    @property
    def shown(self) -> str:
        """The content for a terminal: its text, or a dump for `xxd -r` if it is not text.

        >>> CommandTest("", b"\\x00\\xffPNG").shown
        '00000000: 00ff 504e 47                             ..PNG\\n'
        """
        plain = self.content.translate(None, _CONTROLS)
        try:
            text = self.content.decode()
        except UnicodeDecodeError:
            return _dump(self.content)
        return text if len(plain) == len(self.content) else _dump(self.content)

    @property
    def size(self) -> int:
        """The number of lines that are not blank; at least 1."""
        return sum(1 for line in self.content.split(b"\n") if line.strip()) or 1

    def with_content(self, content: bytes) -> CommandTest:
        """Return the same test with another content, and so without a tree."""
        return replace(self, content=content, tree=None)

    def to_json(self) -> dict[str, Any]:
        """Return the test as JSON data."""
        data: dict[str, Any] = {"format": FORMAT, "subject": self.subject}
        try:
            data["text"] = self.content.decode()
        except UnicodeDecodeError:
            data["base64"] = base64.b64encode(self.content).decode()
        if self.settings:
            data["settings"] = dict(self.settings)
        if self.seed is not None:
            data["seed"] = self.seed
        if self.features is not None:
            data["features"] = list(self.features)
        if self.tree is not None:
            data["tree"] = self.tree
        if self.only:
            data["only"] = list(self.only)
        return data

    @classmethod
    def from_json(cls, data: Any) -> CommandTest:
        """Return the test that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise UserError(f"not a saved command test (its format should be {FORMAT!r})")
        try:
            if "base64" in data:
                content = base64.b64decode(data["base64"], validate=True)
            else:
                content = data["text"].encode()
            features = data.get("features")
            return cls(
                data.get("subject", ""),
                content,
                dict(data.get("settings", {})),
                data.get("seed"),
                None if features is None else tuple(features),
                data.get("tree"),
                tuple(data.get("only", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
            raise UserError("a saved command test is broken: it has no 'text'") from None


def _dump(content: bytes) -> str:
    lines = []
    for offset in range(0, len(content), 16):
        row = content[offset : offset + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{offset:08x}: {row.hex(' ', -2):<39}  {text}\n")
    return "".join(lines)
