"""Weaving."""
