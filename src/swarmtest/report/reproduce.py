"""The commands that give each number of a report again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from swarmtest.report.terminal import command_text
from swarmtest.store import CampaignRecord
from swarmtest.subjects.threads.target import Target

_USUAL_TIMEOUT = 10.0
_USUAL_STRATEGY = "coin"
"""The one that `swarmtest race` takes."""
_RACE = "race "


def run_command(record: CampaignRecord, tests: int) -> str:
    """The command that runs a campaign's tests again; empty if no command line could.

    As many tests as it ran (visits, of a search), whatever ended it: time and Ctrl-C end no two
    campaigns alike.

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
    if subject["text"].startswith(_RACE) and record.strategy == _USUAL_STRATEGY:
        return _race_command(record, subject["text"], tests)
    words = [shlex.quote(subject["text"]), *_subject_words(subject)]
    words += ["--strategy", shlex.quote(record.strategy), f"--seed {record.seed}"]
    words.append(f"--tests {tests}")
    seconds = options.get("seconds") or _USUAL_TIMEOUT
    if seconds != _USUAL_TIMEOUT:
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
    """What stands after ``--`` is a program of its own, so options come before it."""
    options, mark, program = text.partition(" -- ")
    words = [options.replace("--seconds", "--timeout")] if mark else []
    words += [f"--seed {record.seed}", f"--tests {tests}"]
    if mark:
        return " ".join(["swarmtest", *words, "--", program])
    target = Target.parse(text)
    kinds = (record.options.get("coverage") or {}).get("kinds", ())
    whole = replace(target, coverage=(*kinds, *target.coverage))
    return " ".join(["swarmtest", str(whole), *words])


def _search_command(record: CampaignRecord, visits: int) -> str:
    told = record.options["search"]
    words = [shlex.quote(told["file"]), f"--engine {shlex.quote(record.strategy)}"]
    words.append(f"--fitness {shlex.quote(told['fitness'])}")
    words += [f"--{name} {told[name]}" for name in ("keep", "combine") if told.get(name)]
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
    """The command that tells one target's roles."""
    words = f"roles {' '.join(map(str, campaigns))} {shlex.quote(target)}"
    return command_text(words + confidence_words(confidence), store)


def confidence_words(confidence: float) -> str:
    """The option, where it is not the usual one."""
    return "" if confidence == 0.95 else f" --confidence {confidence:g}"
