"""Noise for native programs with POSIX or C11 threads, through a preloaded C library."""
