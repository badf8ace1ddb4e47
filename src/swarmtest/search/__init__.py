"""Search a space of test settings for those that reach or reveal most (SearchBestie)."""
