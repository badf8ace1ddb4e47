"""The statistics that the capabilities share: evidence, propensities, counts and intervals."""
