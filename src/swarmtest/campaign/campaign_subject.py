"""From what a user passes as the subject of a campaign to the subject itself."""

from __future__ import annotations

import copy
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from swarmtest.core.constraints import Constraint
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import file_of_module, imported_program
from swarmtest.languages.user_objects import split_reference
from swarmtest.subjects.loading import SubjectReference, module_of, package_of
from swarmtest.subjects.machine.machine import Machine
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.subject import Subject, incompleteness, is_subject


def resolve(
    subject: str | type[Machine | Subject] | SubjectReference | Subject,
) -> tuple[SubjectReference | None, Subject]:
    """Return the subject, and before it a reference by which another process can import it.

    The reference is None if the subject cannot be imported by name.
    """
    if isinstance(subject, str):
        subject = SubjectReference(subject)
    if isinstance(subject, SubjectReference):
        loaded = subject.load()
        return replace(subject, text=loaded.name), loaded
    if isinstance(subject, type):
        reference = SubjectReference(f"{subject.__module__}:{subject.__qualname__}")
        importable = reference if _is_importable(subject) else None
        if issubclass(subject, Subject):
            return importable, resolve(subject())[1]
        return importable, MachineSubject(subject, reference.text)
    if not is_subject(subject):
        shown = getattr(subject, "name", "") or type(subject).__qualname__
        raise UserError(
            incompleteness(subject, shown)
            or f"{subject!r} cannot be tested: name a subject, or derive its class from "
            "swarmtest.Subject"
        )
    return None, subject


def with_constraints(
    resolved: tuple[SubjectReference | None, Subject], avoid: tuple[Constraint, ...]
) -> tuple[SubjectReference | None, Subject]:
    """Return the same subject with more constraints on its configurations."""
    reference, subject = resolved
    if avoid:
        subject = copy.copy(subject)
        subject.space = subject.space.constrained(avoid)
        reference = reference and replace(reference, avoid=(*reference.avoid, *avoid))
    return reference, subject


def version_of(subject: Subject) -> str:
    """Return a hash of the file that defines the subject's machine; empty if there is none."""
    file = getattr(subject, "harness", "")
    try:
        return Source("", Path(file).read_text()).id if file else ""
    except (OSError, UnicodeDecodeError):
        return ""


def scoped_to_subject(coverage: CoverageOptions, subject: Any) -> CoverageOptions:
    """Return the options with the subject's place and what its file imports: the default scope."""
    if coverage.beside or coverage.package:
        return coverage
    derived = isinstance(subject, SubjectReference) and subject.api
    if isinstance(subject, SubjectReference):
        subject = subject.text
    if isinstance(subject, str):
        where, _ = split_reference(subject)
        if where.endswith(".toml"):
            raise UserError(
                f"--coverage watches Python; for what {where} runs, build it with `swarmtest cc` "
                "and say cover = true in its step"
            )
        if where.endswith(".py") or os.sep in where:
            file = str(Path(where).resolve())
            placed = replace(coverage, beside=os.path.dirname(file))
        else:
            placed = replace(coverage, package=package_of(where))
            file = file_of_module(module_of(where))
        return placed if derived else _driven_by(file, placed)
    module = sys.modules.get(getattr(subject, "__module__", ""))
    file = getattr(module, "__file__", None) or ""
    if not file:
        return coverage
    return _driven_by(file, replace(coverage, beside=str(Path(file).resolve().parent)))


def _driven_by(file: str, coverage: CoverageOptions) -> CoverageOptions:
    """Return the options for a file that drives the program which it imports."""
    if not file:
        return coverage
    program = imported_program(file)
    harness = os.path.realpath(file)
    return replace(coverage, imports=program.names, left_out=program.left_out, harness=harness)


def _is_importable(cls: type) -> bool:
    value: Any = sys.modules.get(cls.__module__) if cls.__module__ != "__main__" else None
    for part in cls.__qualname__.split("."):
        value = getattr(value, part, None)
    return value is cls
