"""The values that everything else works with: spaces, configurations, results, targets."""
