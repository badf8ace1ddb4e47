"""Reduction: shrink a test while it still fails, or still covers what it has to cover."""
