"""A race as a sequence diagram of Mermaid, which issue trackers draw.

    sequenceDiagram
        participant t1 as main.1
        Note over t1: 9 left = self.left<br/>reads self.left: 1

Each row of the timeline is a note over its thread.
"""

from __future__ import annotations

from swarmtest.race.timeline import Explanation, TimelineRow

_ESCAPED = {"#": "#35;", ";": "#59;", "<": "#lt;", ">": "#gt;", "\n": "<br/>"}


def mermaid_text(explanation: Explanation) -> str:
    """Return the timeline of a race as a sequence diagram.

    >>> rows = (
    ...     TimelineRow("main.1", "a.py", 9, "n = self.n", ("reads self.n: 1",), (), True),
    ...     TimelineRow("main.2", "a.py", 9, "n = self.n", ("reads self.n: 1",)),
    ... )
    >>> print(mermaid_text(Explanation("", "AssertionError: 1 < 2", rows, (10, 10), "")))
    sequenceDiagram
        participant t1 as main.1
        participant t2 as main.2
        Note over t1: a.py:9 n = self.n<br/>reads self.n: 1
        Note over t1: stopped
        Note over t2: a.py:9 n = self.n<br/>reads self.n: 1
        Note over t1,t2: AssertionError: 1 #lt; 2
    <BLANKLINE>
    """
    names = dict.fromkeys(row.thread for row in explanation.rows if row.thread)
    order = sorted(names, key=lambda name: [int(part) for part in name.split(".")[1:]])
    ids = {name: f"t{number}" for number, name in enumerate(order, 1)}
    lines = [f"participant {ids[name]} as {name}" for name in order]
    for row in explanation.rows:
        lines += _row_lines(row, ids)
    if ids:
        ends = ",".join(dict.fromkeys((ids[order[0]], ids[order[-1]])))
        lines.append(f"Note over {ends}: {_escaped(explanation.message)}")
    return "\n".join(["sequenceDiagram", *(f"    {line}" for line in lines)]) + "\n"


def _row_lines(row: TimelineRow, ids: dict[str, str]) -> list[str]:
    if not row.thread:
        first, *rest = ids.values()
        return [f"Note over {','.join((first, *rest[-1:]))}: {_escaped(row.source)}"]
    held = [f"holds {', '.join(row.held)}"] if row.held else []
    place = f"{row.path}:{row.line} " if row.line else ""
    text = "\n".join([f"{place}{row.source}", *row.does, *held])
    lines = [f"Note over {ids[row.thread]}: {_escaped(text)}"]
    return [*lines, f"Note over {ids[row.thread]}: stopped"] if row.stopped else lines


def _escaped(text: str) -> str:
    return "".join(_ESCAPED.get(character, character) for character in text)
