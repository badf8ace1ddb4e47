"""Searching a space of test settings: spaces, executors, engines, explorations and their study."""
