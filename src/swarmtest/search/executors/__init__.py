"""What executes a test at a point, and how executors are put together."""
