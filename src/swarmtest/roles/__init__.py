"""Triggers and suppressors: which features make a target more likely, and which less."""
