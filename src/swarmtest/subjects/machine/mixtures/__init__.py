"""Which values are drawn more often than others: those at which programs change their minds."""
