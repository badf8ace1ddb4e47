"""From what a campaign kept to what a person wants to know: why, and what is still unseen."""
