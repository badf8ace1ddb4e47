"""Directed swarm testing: random tests aimed at chosen code, changes or faults."""
