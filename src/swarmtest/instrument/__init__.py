"""Seeing what a test did: coverage of Python through one import hook, and of native programs."""
