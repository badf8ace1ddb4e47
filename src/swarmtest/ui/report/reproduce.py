"""Commands that reproduce what a report shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from swarmtest.race.raced_program import RacedProgram
from swarmtest.store.records import CampaignRecord
from swarmtest.ui.terminal.tables import command_text

# Commands.

_DEFAULT_TIMEOUT = 10.0
_RACE_STRATEGY = "coin"
"""The strategy of `swarmtest race`."""
_RACE_PREFIX = "race "


def run_command(record: CampaignRecord, tests: int) -> str:
    """Return the command that runs a campaign's tests again; empty if no command can.

    The budget is the number of tests that were run (for a search, the number of visits), whatever
    ended the campaign: a time limit or Ctrl-C would not end it at the same test again.

    >>> options = {"subject": {"text": "stack.py"}, "budget": {"wall_seconds": 1}}
    >>> run_command(CampaignRecord("stack.py::Stack", "coin", 3, {}, options), 8983)
    'swarmtest run stack.py --strategy coin --seed 3 --tests 8983'
    """
    options = record.options
    if options.get("search", {}).get("file"):
        return _search_command(record, tests)
    subject = options.get("subject")
    if not subject:
        return ""
    if subject["text"].startswith(_RACE_PREFIX) and record.strategy == _RACE_STRATEGY:
        return _race_command(record, subject["text"], tests)
    words = [shlex.quote(subject["text"]), *_subject_words(subject)]
    words += ["--strategy", shlex.quote(record.strategy), f"--seed {record.seed}"]
    words.append(f"--tests {tests}")
    seconds = options.get("seconds") or _DEFAULT_TIMEOUT
    if seconds != _DEFAULT_TIMEOUT:
        words.append(f"--timeout {seconds:g}s")
    if isinstance(options.get("memory"), int):
        words.append(
            f"--memory {options['memory'] >> 20}MB" if options["memory"] else "--memory none"
        )
    words += _coverage_words(options.get("coverage") or {})
    if record.avoids:
        words.append(f" # and --avoid: {'; '.join(record.avoids)}")
    return " ".join(["swarmtest run", *words])


def _race_command(record: CampaignRecord, text: str, tests: int) -> str:
    """Put the options before ``--``: what follows it is the command line of a program."""
    options, separator, program = text.partition(" -- ")
    words = [options.replace("--seconds", "--timeout")] if separator else []
    words += [f"--seed {record.seed}", f"--tests {tests}"]
    if separator:
        return " ".join(["swarmtest", *words, "--", program])
    target = RacedProgram.parse(text)
    kinds = (record.options.get("coverage") or {}).get("kinds", ())
    with_coverage = replace(target, coverage=(*kinds, *target.coverage))
    return " ".join(["swarmtest", str(with_coverage), *words])


def _search_command(record: CampaignRecord, visits: int) -> str:
    search = record.options["search"]
    words = [shlex.quote(search["file"]), f"--engine {shlex.quote(record.strategy)}"]
    words.append(f"--fitness {shlex.quote(search['fitness'])}")
    words += [f"--{name} {search[name]}" for name in ("keep", "combine") if search.get(name)]
    words += [f"--seed {record.seed}", f"--points {visits}"]
    return " ".join(["swarmtest search run", *words])


def _subject_words(subject: dict[str, Any]) -> list[str]:
    words = ["--api"] if subject.get("api") else []
    words += [f"--raises {shlex.quote(name)}" for name in subject.get("raises", ())]
    if subject.get("steps"):
        low, high = subject["steps"]
        words.append(f"--steps {low}" if low == high else f"--steps {low}-{high}")
    return words


def _coverage_words(coverage: dict[str, Any]) -> list[str]:
    if not coverage:
        return []
    words = [f"--coverage {','.join(coverage.get('kinds', ['line']))}"]
    words += [f"--cover {shlex.quote(name)}" for name in coverage.get("cover", ())]
    probes = coverage.get("probes", "auto")
    return [*words, *([f"--probes {probes}"] if probes != "auto" else [])]


def roles_command(campaigns: Sequence[int], target: str, store: str, confidence: float) -> str:
    """Return the command that shows the roles for one target."""
    words = f"roles {' '.join(map(str, campaigns))} {shlex.quote(target)}"
    return command_text(words + confidence_words(confidence), store)


def confidence_words(confidence: float) -> str:
    """Return the option ``--confidence``; empty for the default."""
    return "" if confidence == 0.95 else f" --confidence {confidence:g}"
