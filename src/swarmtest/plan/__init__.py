"""Before the first test: how many tests until certain features come together."""
