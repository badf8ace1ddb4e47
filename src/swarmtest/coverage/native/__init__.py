"""Coverage of compiled programs: building them with gcov's probes, running them, reading hits."""
