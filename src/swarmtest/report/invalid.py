"""Tests that the generator could not make, as text: why, and under which configurations."""

from __future__ import annotations

from collections import Counter

from swarmtest.report.terminal import plural, table
from swarmtest.result import Verdict
from swarmtest.space import Configuration, Space
from swarmtest.store import Store

_MOST = 8
_HEAD = ("invalid", "of tests", "configuration")
_FEATURES = ("feature", "invalid with", "invalid without")


def invalid_lines(store: Store, campaign: int) -> list[str]:
    """Reasons, the worst configurations, and the features that go with it; nothing if none was."""
    space = Space.from_json(store.campaign(campaign).space)
    reasons: Counter[str] = Counter()
    tests: Counter[bytes] = Counter()
    invalid: Counter[bytes] = Counter()
    for trial in store.trials(campaign):
        tests[trial.configuration] += 1
        if trial.verdict == Verdict.INVALID:
            reasons[trial.missing] += 1
            invalid[trial.configuration] += 1
    if not invalid:
        return []
    useless = sum(invalid[c] == tests[c] for c in invalid)
    lines = [
        f"invalid tests: {reasons.total():,}, in {plural(len(invalid), 'configuration')}, "
        f"of which {useless:,} gave no valid test",
        *(f"  {count:,}: {reason}" for reason, count in reasons.most_common(_MOST)),
    ]
    if any(count > 1 for count in tests.values()):
        worst = sorted(invalid, key=lambda c: (-invalid[c] / tests[c], -tests[c], c))[:_MOST]
        rows = [
            (str(invalid[c]), str(tests[c]), str(Configuration.from_bytes(space, c))) for c in worst
        ]
        lines += ["", *table(_HEAD, rows, right="rr").splitlines()]
    return [*lines, "", *table(_FEATURES, _feature_rows(space, tests, invalid), " rr").splitlines()]


def _feature_rows(
    space: Space, tests: Counter[bytes], invalid: Counter[bytes]
) -> list[tuple[str, ...]]:
    """For each feature the share of invalid tests with and without it, largest difference first."""
    shares: list[tuple[float, str, tuple[str, str]]] = []
    bits = {c: Configuration.from_bytes(space, c).bits for c in tests}
    for i, name in enumerate(space.feature_names):
        with_it = [c for c in tests if bits[c] >> i & 1]
        without = [c for c in tests if not bits[c] >> i & 1]
        pair = [
            sum(invalid[c] for c in some) / max(sum(tests[c] for c in some), 1)
            for some in (with_it, without)
        ]
        shown = [
            f"{share:.1%}" if some else "-"
            for share, some in zip(pair, (with_it, without), strict=True)
        ]
        shares.append((-abs(pair[0] - pair[1]), name, (shown[0], shown[1])))
    return [(name, *shown) for _, name, shown in sorted(shares)[:_MOST]]
