"""Inputs made by changing others: a corpus directory and a dictionary, as fuzzers have them.

The ways to change an input are features, and so is every word of the dictionary. A test then uses
half of the words instead of a few of all, and roles say which words matter to a fault or a line.

The corpus is read once, in the order of its names, so that a seed gives the same test as long as
the directory is the same. Nothing is added to it while tests run; `swarmtest suite --inputs` does.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Container, Mapping
from pathlib import Path

from swarmtest.core.errors import UserError

_ENTRY = re.compile(r'\s*(?:([\w.-]+)\s*(?:@\d+\s*)?=\s*)?"(.*)"\s*$')
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0"}
_NUMBERS = (0, 1, -1, 16, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
_DIGITS = re.compile(rb"[0-9]+")
_MOST_CHANGES = 16
_Bytes = bytearray
_Change = Callable[["Mutations", random.Random, _Bytes], None]


def read_dictionary(path: str | Path) -> dict[str, bytes]:
    r"""Return the words of a dictionary in the format of AFL and libFuzzer, by their names.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     file = Path(place, "json.dict")
    ...     _ = file.write_text('# words\nnull="null"\n"\\x00\\""\n')
    ...     read_dictionary(file)
    {'null': b'null', 'word_3': b'\x00"'}
    """
    try:
        lines = Path(path).read_text(errors="surrogateescape").splitlines()
    except OSError as error:
        raise UserError(f"cannot read the dictionary {path}: {error.strerror}") from None
    words: dict[str, bytes] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = _ENTRY.match(line)
        if entry is None:
            raise UserError(f'{path}:{number}: {line.strip()[:60]!r} is not name="word"')
        raw = entry[2].encode(errors="surrogateescape")
        words[entry[1] or f"word_{number}"] = _ESCAPE.sub(_unescaped, raw)
    return words


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code[1:], 16)]) if len(code) == 3 else _ESCAPED.get(code, code)


def read_corpus(path: str | Path, most: int = 1 << 20) -> list[bytes]:
    """Return the content of the files in a directory and below, in the order of their names.

    Longer files than `most` bytes are left out.
    """
    directory = Path(path)
    if not directory.is_dir():
        raise UserError(f"there is no corpus directory {path}")
    files = sorted(file for file in directory.rglob("*") if file.is_file())
    corpus = [file.read_bytes() for file in files if os.path.getsize(file) <= most]
    if not corpus:
        raise UserError(f"the corpus directory {path} has no file of at most {most:,} bytes")
    return corpus


class Mutations:
    """Makes inputs from those of a corpus directory, with the words of a dictionary.

    `corpus` is a directory of inputs, and `dictionary` a file with words in the format of AFL and
    libFuzzer. Give `features` to `generator`, and return what `mutated` returns:

    >>> changes = Mutations(words={"null": b"null", "brace": b"{"})
    >>> changes.features[-2:]
    ('word_null', 'word_brace')
    >>> only = {"insert", "word_null"}
    >>> set(changes.mutated(random.Random(1), only).decode()) <= set("null")
    True
    """

    def __init__(
        self,
        corpus: str | Path | None = None,
        dictionary: str | Path | None = None,
        *,
        words: Mapping[str, bytes] | None = None,
        longest: int = 4096,
    ) -> None:
        self.corpus = [b""] if corpus is None else read_corpus(corpus, longest)
        self.longest = longest
        """Longer inputs are cut."""
        known = {**(read_dictionary(dictionary) if dictionary is not None else {}), **(words or {})}
        self.words = {f"word_{name.removeprefix('word_')}": word for name, word in known.items()}

    @property
    def features(self) -> tuple[str, ...]:
        """The ways to change an input, and the words."""
        return (*_CHANGES, *(["insert", "overwrite"] if self.words else []), *self.words)

    def mutated(self, rng: random.Random, features: Container[str]) -> bytes:
        """Return an input of the corpus after some changes that are among the features."""
        data = bytearray(rng.choice(self.corpus))
        changes = [change for name, change in _CHANGES.items() if name in features]
        words = [word for name, word in self.words.items() if name in features]
        inserts, overwrites = "insert" in features, "overwrite" in features
        for _ in range(min(1 << rng.randrange(5), _MOST_CHANGES)):
            choices = len(changes) + (2 * bool(words) if inserts or overwrites else 0)
            if not choices:
                break
            chosen = rng.randrange(choices)
            if chosen < len(changes):
                changes[chosen](self, rng, data)
            else:
                place, word = rng.randint(0, len(data)), rng.choice(words)
                keep = inserts and (not overwrites or rng.random() < 0.5)
                data[place : place if keep else place + len(word)] = word
        return bytes(data[: self.longest])


def _flip_bit(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _insert_bytes(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    place = rng.randint(0, len(data))
    data[place:place] = rng.randbytes(rng.randint(1, 8))


def _repeat_byte(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    place = rng.randint(0, len(data))
    byte = data[place - 1] if data else rng.randrange(256)
    data[place:place] = bytes([byte]) * rng.choice((8, 32, 128))


def _delete(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    first, last = _part(rng, data)
    del data[first:last]


def _duplicate(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    first, last = _part(rng, data)
    place = rng.randint(0, len(data))
    data[place:place] = data[first:last]


def _move(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    first, last = _part(rng, data)
    part = data[first:last]
    del data[first:last]
    place = rng.randint(0, len(data))
    data[place:place] = part


def _splice(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    other = rng.choice(mutations.corpus)
    data[rng.randint(0, len(data)) :] = other[rng.randint(0, len(other)) :]


def _number_in_text(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    numbers = [match.span() for match in _DIGITS.finditer(data)]
    if numbers:
        first, last = rng.choice(numbers)
        data[first:last] = str(rng.choice(_NUMBERS)).encode()


def _binary_number(mutations: Mutations, rng: random.Random, data: _Bytes) -> None:
    size = rng.choice((1, 2, 4, 8))
    place = rng.randint(0, max(len(data) - size, 0))
    number = rng.choice(_NUMBERS) & ((1 << 8 * size) - 1)
    data[place : place + size] = number.to_bytes(size, rng.choice(("little", "big")))


def _part(rng: random.Random, data: _Bytes) -> tuple[int, int]:
    """Return where a part of the input begins and ends; short parts are as likely as long ones."""
    size = min(1 << rng.randrange(12), len(data))
    first = rng.randint(0, len(data) - size)
    return first, first + size


_CHANGES: Mapping[str, _Change] = {
    "flip_bit": _flip_bit,
    "set_byte": _set_byte,
    "insert_bytes": _insert_bytes,
    "repeat_byte": _repeat_byte,
    "delete": _delete,
    "duplicate": _duplicate,
    "move": _move,
    "splice": _splice,
    "number_in_text": _number_in_text,
    "binary_number": _binary_number,
}
"""The ways to change an input, by the names of their features."""
