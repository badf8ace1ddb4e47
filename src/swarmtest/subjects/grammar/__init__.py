"""Random texts of a grammar: reading grammar files, generating texts, and reducing them."""
