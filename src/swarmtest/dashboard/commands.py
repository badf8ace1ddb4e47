"""From the forms of a page to commands: the very ones that a person would type.

A form becomes a list of words, never a line for a shell. Values are tied to their options with
``=``, so that none can pass for another option.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swarmtest.errors import UserError
from swarmtest.report.terminal import command_text
from swarmtest.store import CampaignRecord

Form = Mapping[str, str]
_WHOLE = re.compile(r"[0-9]{1,12}")
_TIME = re.compile(r"[0-9.]{1,12} ?[a-z]{0,3}([0-9.]{1,12} ?[a-z]{1,3})?")
_FAULT = re.compile(r"[0-9a-f]{8}")
AIMS = {
    "fault": "a fault's id",
    "line": "FILE:LINE",
    "lines": "FILE:A-B",
    "function": "MODULE:NAME",
    "diff": "a git revision",
    "target": "KIND:NAME",
}
"""What `swarmtest focus` can be pointed at, and how that is written."""


@dataclass(frozen=True)
class Command:
    """What comes after ``swarmtest``.

    >>> command = Command(("run", "stack.py"), (("--tests", "100"), ("--api", "")))
    >>> command.words()
    ['run', 'stack.py', '--tests=100', '--api']
    >>> command.text(".swarmtest/swarmtest.db")
    'swarmtest run stack.py --tests 100 --api'
    """

    plain: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    """Each with its value; empty: a flag."""
    campaign: int | None = None
    """The one that it is about, if that is there already."""

    def words(self) -> list[str]:
        """As a process gets them."""
        tied = [f"{name}={value}" if value else name for name, value in self.options]
        return [*self.plain, *tied]

    def text(self, store: str) -> str:
        """As a person types it."""
        words = [*map(shlex.quote, self.plain)]
        words += [f"{name} {shlex.quote(value)}" if value else name for name, value in self.options]
        return command_text(" ".join(words), store)


def run_command(form: Form) -> Command:
    """A new campaign.

    >>> run_command({"subject": "stack.py", "tests": "500", "strategy": "coin"}).words()
    ['run', 'stack.py', '--strategy=coin', '--tests=500']
    """
    subject = _subject(form.get("subject", ""))
    options = [
        *_given(form, "strategy"),
        *_budget(form),
        *_whole(form, "seed"),
        *_whole(form, "workers"),
        *_given(form, "coverage"),
    ]
    if form.get("api"):
        options.append(("--api", ""))
    return Command(("run", subject), tuple(options))


def resume_command(record: CampaignRecord, form: Form) -> Command:
    """More of a campaign."""
    return Command(("resume", str(record.id)), tuple(_budget(form)), record.id)


def focus_command(record: CampaignRecord, form: Form) -> Command:
    """Tests that go where a person points."""
    reference = _reference(record)
    aim, where = form.get("aim", ""), form.get("where", "").strip()
    if aim not in AIMS:
        raise UserError(f"{aim!r}: focus on one of {', '.join(AIMS)}")
    if not where:
        raise UserError(f"say where to focus: {AIMS[aim]}")
    options = [(f"--{aim}", where), *_budget(form)]
    if reference.get("api"):
        options.append(("--api", ""))
    options += [("--raises", str(name)) for name in reference.get("raises", ())]
    return Command(("focus", _subject(str(reference["text"]))), tuple(options), record.id)


def reduce_command(record: CampaignRecord, form: Form) -> Command:
    """A fault's test made smaller."""
    _reference(record)
    fault = form.get("fault", "")
    if not _FAULT.fullmatch(fault):
        raise UserError(f"{fault!r} is not the id of a fault, like 4ee18053")
    return Command(("reduce", fault), tuple(_time(form, "time")), record.id)


def _reference(record: CampaignRecord) -> Mapping[str, Any]:
    reference = record.options.get("subject")
    if not isinstance(reference, dict) or "text" not in reference:
        raise UserError(f"campaign {record.id} does not say where its subject is: run it in Python")
    return reference


def _subject(text: str) -> str:
    text = text.strip()
    if not text or text.startswith("-") or "\0" in text:
        raise UserError("name what to test: a file like stack.py, or MODULE:CLASS")
    return text


def _budget(form: Form) -> list[tuple[str, str]]:
    return [*_whole(form, "tests"), *_time(form, "time")]


def _given(form: Form, name: str) -> list[tuple[str, str]]:
    value = form.get(name, "").strip()
    return [(f"--{name}", value)] if value else []


def _whole(form: Form, name: str) -> list[tuple[str, str]]:
    value = form.get(name, "").strip().replace(",", "")
    if value and not _WHOLE.fullmatch(value):
        raise UserError(f"{name}: a whole number like 1000, not {value!r}")
    return [(f"--{name}", value)] if value else []


def _time(form: Form, name: str) -> list[tuple[str, str]]:
    value = form.get(name, "").strip()
    if value and not _TIME.fullmatch(value):
        raise UserError(f"{name}: a duration like 30s, 5m or 2h, not {value!r}")
    return [(f"--{name}", value)] if value else []
