"""The user interfaces: command line, terminal output, HTML report and dashboard."""
