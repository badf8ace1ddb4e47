"""Rare bugs of PyPI releases on which `why` is judged; no parameter was chosen on them.

How this set was made, in this order: the experiments were frozen (the sources of `swarmtest.why` at
commit 2b72fa1); old releases were chosen by their changelogs and by the code that the fix changed;
the machines were written; plain campaigns (no experiments) showed that each bug is rarer than one
test in 2,000, and that the release with the fix does not show it (for hpack: 3.0.0, whose decoder
understands what the fixed encoder sends); for three machines the range of a generator was widened
until that held. Then the truth below was written from the changelog and
from the fix, and committed. Only after that commit `why` saw these bugs for the first time.
"""

from __future__ import annotations

from why_truth import KnownCause, group

JUDGING = [
    KnownCause(
        "Buffer: heavier value",
        "zict",
        "1.0.0",
        "2.0.0",
        "Duplicate keys fast slow (pull request 32): setting a key of the fast dict to a value "
        "that is heavier than all of it did not delete the old one",
        "zict_machine.py",
        "AssertionError [BufferMachine.",
        (group("set", "update"), group("items", "size", "get_known", "get")),
        group("setdefault"),  # it can make the first, light value, but replaces none
        tests=40_000,
        relation=("key", "key"),
        also=(("heapdict", "1.0.1"),),
        quick_tests=4_000,
        judged=True,
    ),
    KnownCause(
        "Set of ranges: intersection",
        "spans",
        "0.2.1",
        "0.3.0",
        "Fixed intersection of multiple range sets not working correctly",
        "spans_machine.py",
        "[SpansMachine.intersect_both]",
        (group("add_first"), group("add_second", "add_third"), group("intersect_both")),
        group(),
        tests=40_000,
        quick_tests=4_000,
        judged=True,
    ),
    KnownCause(
        "make_patch: moved value",
        "jsonpatch",
        "1.23",
        "1.24",
        "the fix in `DiffBuilder._item_added`: a value that moves from a key that looks like a "
        "number to one that does not was treated as an item of a list",
        "json_patch_machine.py",
        "_on_undo_remove < DiffBuilder._item_added < DiffBuilder._compare_dicts]",
        # Either direction: what one patch removes, the other adds.
        (group("set_old"), group("set_new", "set_top"), group("patch", "patch_back")),
        # These build the same documents in more steps. A list as the place where the value goes
        # fails too, which the fix leaves as it was.
        group("copy_all", "delete", "insert_new"),
        tests=40_000,
        relation=("value", "value"),
        also=(("jsonpointer", "2.4"),),
        judged=True,
    ),
    KnownCause(
        "Map: the key None",
        "immutables",
        "0.11",
        "0.14",
        "the fix in `map.py`: the mark of an inner node is an object of its own, no longer None",
        "immutable_map_machine.py",
        "[BitmapNode.items < ImmutableMapMachine.items]",
        (group("set", "mutate"), group("items")),
        group(),
        tests=40_000,
        source=True,
        judged=True,
    ),
    KnownCause(
        "Encoder: two changes of size",
        "hpack",
        "2.0.0",
        "2.0.1",
        "Fixed a bug where the Python HPACK implementation would only emit header table size "
        "changes for the total change between one header block and another, rather than for the "
        "entire sequence of changes",
        "hpack_machine.py",
        "[HpackMachine.compare_tables]",
        (
            group("send", "send_plain", "send_several"),  # a header that gets into the table
            group("resize"),  # which is removed again, in the encoder
            group("resize", "resize_fully"),
            group("send", "send_plain", "send_several", "send_known"),  # the next block
            group("compare_tables"),
        ),
        group(),
        tests=20_000,
        judged=True,
    ),
    KnownCause(
        "IntervalTree: rotation",
        "intervaltree",
        "2.0.0",
        "2.0.1",
        "Issue #26: failed to prune empty `Node` after a rotation promoted contents of `s_center`",
        "interval_tree_machine.py",
        "pop from empty list",
        (group("add", "update"), group("remove", "discard")),
        group(),
        tests=40_000,
        judged=True,
    ),
]
