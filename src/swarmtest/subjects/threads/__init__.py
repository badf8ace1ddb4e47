"""Threaded Python programs as subjects: settings of a search for races, and what it finds."""
