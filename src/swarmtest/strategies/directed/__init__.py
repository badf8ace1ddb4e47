"""Directed swarm testing: configurations that hit chosen targets more often."""
