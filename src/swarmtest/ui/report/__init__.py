"""The report of a campaign: its contents, figures and HTML."""
