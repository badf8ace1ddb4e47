"""Programs as subjects: a TOML file names a generator, the commands to run and the oracles."""
