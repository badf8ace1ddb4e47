"""What people see of a campaign: progress and tables in a terminal."""
