"""Record the values with which a package is called while its tests or examples run."""
