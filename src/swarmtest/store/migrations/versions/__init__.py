"""One module per version of the PostgreSQL schema; each brings the one before up to date."""
