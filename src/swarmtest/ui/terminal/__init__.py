"""Text output for terminals: tables, progress and coverage."""
