"""Oracles that need no writing: ready models, comparison of implementations, metamorphic checks."""
