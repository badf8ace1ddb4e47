"""Whether a campaign still finds new things, and what more tests would find."""
