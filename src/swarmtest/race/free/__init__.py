"""Free runs: threads run as the operating system schedules them, with noise or none."""
