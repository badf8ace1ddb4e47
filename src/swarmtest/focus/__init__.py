"""Random tests that go where you point: from what a user names to a directed campaign."""
