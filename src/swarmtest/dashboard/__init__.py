"""A live web page of a store: what runs, what was found and why, and buttons for commands."""
