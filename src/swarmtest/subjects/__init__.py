"""Subjects: what is tested, and how its tests are generated, run, replayed and printed.

`subject` defines the interface and `loading` finds a subject by the name that a user gives. The
kinds of subjects are machines (`machine`), machines derived from any class (`api`), commands
(`command`), grammars (`grammar`) and Hypothesis state machines (`hypothesis`).
"""

from swarmtest._exports import exports_of

__getattr__, __dir__ = exports_of(__name__)
