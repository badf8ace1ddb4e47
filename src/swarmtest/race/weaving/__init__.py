"""Weaving probes into the program's modules."""
