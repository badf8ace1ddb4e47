"""Arguments as JSON: what JSON lacks gets a tag, and what has no tag is pickled.

Reading back a pickled value runs code, as replaying a test does: not for files from strangers.
"""

from __future__ import annotations

import base64
import pickle
from typing import Any, NamedTuple

from swarmtest.errors import UserError


class Ref(NamedTuple):
    """A value that an earlier step of the same test made, by its number.

    >>> Ref(3)
    Ref(label=3)
    """

    label: int


def to_json(value: Any) -> Any:
    """A value as JSON data.

    >>> to_json((1, b"a"))
    {'$tuple': [1, {'$bytes': 'YQ=='}]}
    """
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if value - value == 0 else {"$float": repr(value)}
    if kind is Ref:
        return {"$ref": value.label}
    if kind is bytes:
        return {"$bytes": base64.b64encode(value).decode()}
    if kind is list:
        return [to_json(item) for item in value]
    if kind in (tuple, set, frozenset):
        items = sorted(value, key=repr) if kind is not tuple else value
        return {f"${kind.__name__}": [to_json(item) for item in items]}
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: to_json(item) for key, item in value.items()}
        return {"$dict": [[to_json(key), to_json(item)] for key, item in value.items()]}
    try:
        return {"$pickle": base64.b64encode(pickle.dumps(value, 5)).decode(), "repr": repr(value)}
    except Exception:
        return {"$lost": repr(value)}


def from_json(data: Any) -> Any:
    """The value that `to_json` wrote.

    >>> from_json(to_json({"a": {1, 2}}))
    {'a': {1, 2}}
    """
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, dict):
        return data
    tag = next(iter(data), "")
    if not tag.startswith("$"):
        return {key: from_json(item) for key, item in data.items()}
    return _tagged(tag, data[tag])


def _tagged(tag: str, body: Any) -> Any:
    match tag:
        case "$ref":
            return Ref(body)
        case "$float":
            return float(body)
        case "$bytes":
            return base64.b64decode(body)
        case "$tuple" | "$set" | "$frozenset":
            kinds: dict[str, Any] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}
            return kinds[tag](from_json(item) for item in body)
        case "$dict":
            return {from_json(key): from_json(item) for key, item in body}
        case "$pickle":
            try:
                return pickle.loads(base64.b64decode(body))
            except Exception as error:
                raise UserError(
                    f"this test has an argument that cannot be read back: {error}"
                ) from None
        case "$lost":
            raise UserError(f"this test has an argument that could not be saved: {body}")
    raise UserError(f"not a test that this version of swarmtest wrote: unknown tag {tag!r}")
