"""Reports of focused campaigns: terminal, Markdown, JSON and formats for CI."""
