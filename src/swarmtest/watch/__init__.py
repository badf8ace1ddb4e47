"""Test a subject again and again while its code changes."""
