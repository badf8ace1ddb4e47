"""Directed swarm testing: strategies that aim tests at targets."""
