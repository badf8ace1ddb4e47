"""Recognise what programs print when they fail."""
