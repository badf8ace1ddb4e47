"""Mutation testing: change a program in small ways and see whether its tests notice."""
