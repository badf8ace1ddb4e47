"""What five minutes of focused tests on a pull request might give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.store.records import FaultRecord

HOSTILE = (
    "a|b `c` <img src=x onerror=alert(1)> ]]> &amp; @me, x=1, 50%0A 5%2C <!-- *z* [l](m)\n"
    "::error file=x::boom\r\x00\ud800 $x$ _y_ ##[error]d \\| e"
)
any_text = st.text(st.characters() | st.sampled_from("|`<>&]:#%\n\r,_*@[\0\ud800 "), max_size=40)


def line(number: int, file: str = "shop/cart.py", **facts: Any) -> FocusedTarget:
    """A line of a file, with what is told about it."""
    return FocusedTarget(f"line:{file}:{number}", file, number, **facts)


def fault(
    name: str = "3fa94c01",
    status: str = "new",
    signature: str = "KeyError: '…' [Cart.total]",
    **facts: Any,
) -> FocusedFault:
    """A fault, with what is told about it."""
    details = (
        "Traceback (most recent call last):\n"
        '  File "shop/cart.py", line 31, in total\n'
        "    return self.prices[name]\n"
        "KeyError: 'pear'\n"
    )
    record = FaultRecord(name, "exception", signature, details, 12, 17, 4, "{}", 13)
    usual: dict[str, Any] = {
        "directed": Count(12, 1200, 250.0),
        "undirected": Count(1, 300, 50.0),
        "location": ("shop/cart.py", 31),
        "replay": "swarmtest replay 7#17",
    }
    return FocusedFault(record, status=status, **(usual | facts))


def counts(directed: int, undirected: int, default: int) -> dict[str, Any]:
    """Hits of each sort of tests."""
    return {
        "directed": Count(directed, 1200, 250.0),
        "undirected": Count(undirected, 900, 160.0),
        "default": Count(default, 100, 30.0),
    }


def pull_request() -> FocusOutcome:
    """Changed lines of three files: most hit more often, some never, one new fault."""
    total: dict[str, Any] = {"function": "Cart.total", "ways": 9, "configurations": 212}
    targets = [
        *(line(n, **total, **counts(372, 19, 1)) for n in (26, 27, 28, 29, 30)),
        line(31, function="Cart.total", **counts(0, 0, 0)),
        line(33, **total, **counts(812, 207, 12), mapped="line 29 of an earlier version"),
        *(
            line(
                n,
                function="Cart.refund",
                **counts(0, 0, 0),
                proxy="line shop/cart.py:36, which comes before it",
            )
            for n in (40, 41)
        ),
        line(
            44,
            function="Cart.refund",
            **counts(88, 0, 0),
            proxy="line shop/cart.py:36, which comes before it",
        ),
        line(
            52, function="Cart.clear", **counts(1100, 801, 99), dropped="hit by 89% of tests anyway"
        ),
        line(8, "shop/discounts/percentages.py", function="rounded", **counts(301, 62, 7)),
        line(9, "shop/discounts/percentages.py", function="rounded", **counts(290, 62, 7)),
        line(77, "shop/tax.py", function="Tax.of", **counts(3, 4, 0)),
    ]
    faults = (
        fault(),
        fault(
            "77aa0210", "old", "AssertionError: stock is never negative [Shop.buy]", location=None
        ),
        fault(
            "9b3e5512",
            "unknown",
            "ZeroDivisionError: division by zero [rounded]",
            why_unknown="the base version cannot replay it: no action apply_discount",
            location=("shop/discounts/percentages.py", 9),
            replay="swarmtest replay 7#801",
        ),
    )
    return FocusOutcome(
        subject="shop_machine.py::Shop",
        campaign=7,
        strategy="half-swarm+aggressive",
        base="origin/main",
        targets=tuple(targets),
        faults=faults,
        unusable=(
            "docs/index.md: not watched (no Python file under shop)",
            "shop/cart.py:25: a comment",
        ),
        notes=("2 aims fell back to no-suppressors: triggers alone gave no valid test",),
        tests=1600,
        directed_tests=1200,
        invalid=21,
        distinct_configurations=412,
        merged_aims=3,
        cpu_seconds=330.0,
        wall_seconds=301.2,
        data_campaigns=(3, 5),
    )


def saying(text: str) -> FocusOutcome:
    """An outcome in which random tests put the same text wherever they can."""
    targets = (
        line(3, text, function=text, proxy=text, mapped=text, ways=2, **counts(5, 1, 0)),
        line(4, text, function=text, **counts(0, 0, 0)),
        line(5, text, dropped=text, **counts(900, 800, 90)),
        FocusedTarget(f"event:{text}", **counts(30, 0, 0), configurations=1, ways=1),
    )
    faults = tuple(
        fault(name, status, text, why_unknown=text, location=(text, 3), replay=text)
        for name, status in (("1", "new"), ("2", "unknown"), ("3", ""), ("4", "old"))
    )
    faults = tuple(replace(f, record=f.record._replace(details=text)) for f in faults)
    return replace(
        pull_request(),
        subject=text,
        strategy=text,
        base=text,
        targets=targets,
        faults=faults,
        unusable=(text,),
        notes=(text,),
    )
