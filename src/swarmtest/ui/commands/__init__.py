"""The commands that belong to no single capability."""
