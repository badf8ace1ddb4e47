"""Commands as subjects: a TOML file says how tests are made, run and judged; no Python needed."""

from swarmtest.subjects.command.command_subject import CommandSubject, load_command_subject

__all__ = ["CommandSubject", "load_command_subject"]
