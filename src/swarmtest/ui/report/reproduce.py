"""Reproducing what a report shows: commands that run it again, and stored tests as code.

A store may come from anybody, so showing it must be safe. `subject.code` imports the subject, and
arguments that are objects are stored as pickles; `StoredTests` turns a stored test into code
without importing a subject or unpickling an object.
"""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.race.raced_program import RacedProgram
from swarmtest.store.records import CampaignRecord
from swarmtest.subjects.hypothesis import test as rule_test
from swarmtest.subjects.machine import test as machine_test
from swarmtest.subjects.machine.test import MachineTest, Step, used_labels
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


# Stored tests as code.

_CONTAINERS = {"$tuple": "({})", "$set": "{{{}}}", "$frozenset": "frozenset([{}])"}


class StoredTests:
    """A stand-in for a subject that turns stored tests into code.

    >>> test = {"format": machine_test.FORMAT, "subject": "stack.py::Stack"}
    >>> print(StoredTests().code(test | {"steps": [["push", [{"$tuple": [1, 2]}]]]}))
    from stack import Stack
    <BLANKLINE>
    machine = Stack()
    machine.start()
    machine.push((1, 2))
    """

    part = "step"

    def code(self, data: Any) -> str:
        """Return a test as a person would write it; as JSON if its format is not known."""
        if not isinstance(data, Mapping):
            return json.dumps(data, indent=1)
        if isinstance(data.get("text"), str):
            return str(data["text"])
        try:
            if data.get("format") == machine_test.FORMAT:
                return _machine_code(MachineTest.from_json(data))
            if data.get("format") == rule_test.FORMAT:
                return _rule_code(data)
        except (UserError, KeyError, TypeError, ValueError, AttributeError):
            pass  # not written by us: show it as JSON
        return json.dumps(data, indent=1)


def _machine_code(test: MachineTest) -> str:
    labels = used_labels(test.steps)
    lines = _head(test.subject)
    if test.settings:
        lines.append(f"machine.settings = {dict(test.settings)!r}")
    return "\n".join([*lines, *(_step_code(step, labels) for step in test.steps)])


def _head(subject: str) -> list[str]:
    """Return the lines that start a machine in a file; for other subjects, a comment."""
    file, _, name = subject.rpartition("::")
    if not (file.endswith(".py") and name.isidentifier()):
        return [f"# {subject}"]
    module = PurePath(file).stem
    return [f"from {module} import {name}", "", f"machine = {name}()", "machine.start()"]


def _step_code(step: Step, labels: set[int]) -> str:
    assignment = f"v{step.label} = " if step.label in labels else ""
    call = f"{assignment}machine.{step.action}({', '.join(map(argument_code, step.arguments))})"
    return f"{call}  # raises {step.raised}" if step.raised else call


def _rule_code(data: Mapping[str, Any]) -> str:
    lines = [f"# {data.get('subject', '')}"]
    for step in data["steps"]:
        words = ", ".join(f"{name}={text}" for name, text in step.get("arguments", {}).items())
        drawn = "".join(f"  # drew {text}" for text in step.get("drawn", ()))
        lines.append(f"v{step['label']} = state.{step['rule']}({words}){drawn}")
    if data.get("violated"):
        lines.append(f"state.{data['violated']}()  # does not hold")
    return "\n".join(lines)


def argument_code(argument: Any) -> str:
    """Return the code of an argument that `to_json` wrote; for an object, its `repr`.

    >>> argument_code([{"$ref": 3}, {"$float": "nan"}, {"$pickle": "gASVBg==", "repr": "<Cart>"}])
    "[v3, float('nan'), <Cart>]"
    """
    if isinstance(argument, list):
        return f"[{', '.join(map(argument_code, argument))}]"
    if not isinstance(argument, Mapping):
        return repr(argument)
    tag = str(next(iter(argument), ""))
    if not tag.startswith("$"):
        return "{" + ", ".join(f"{k!r}: {argument_code(v)}" for k, v in argument.items()) + "}"
    if tag in ("$pickle", "$lost"):
        return str(argument.get("repr", argument[tag] if tag == "$lost" else "<an object>"))
    return _tagged_code(tag, argument[tag])


def _tagged_code(tag: str, body: Any) -> str:
    if tag == "$ref":
        return f"v{body}"
    if tag == "$float":
        return f"float({body!r})"
    if tag == "$bytes":
        return repr(base64.b64decode(body))
    if tag == "$dict":
        return "{" + ", ".join(f"{argument_code(k)}: {argument_code(v)}" for k, v in body) + "}"
    items = ", ".join(map(argument_code, body))
    if tag == "$set" and not body:
        return "set()"
    return _CONTAINERS[tag].format(f"{items}," if tag == "$tuple" and len(body) == 1 else items)
