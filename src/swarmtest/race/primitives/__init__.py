"""Primitives."""
